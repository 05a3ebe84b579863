"""Find the patterns that may take more than linear time by their trees, without a clock.

A backtracking engine takes quadratic time or more where some text leads from a place ONE of a
pattern back to ONE, also from ONE to a place TWO, and from TWO back to TWO. Of that text repeated,
each repetition is another point to change from the first loop to the second, and after each the
rest is read again. So it is with two adjoining repeats over common signs, with a repeat within a
repeat (ONE is TWO, reached by two ways), and with a search that starts again at each sign (ONE is
the text before the match). Where the pattern may end in such a text, nothing is read again.
"""

import re
import sre_compile
import sre_constants as c
import sre_parse
from collections import deque
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from operator import contains
from typing import NamedTuple

SIGNS = "a1 \n.,;:-()[]{}\\\"'$%@/|<>#=~^_*&+!?A\té一–"  # besides those that a pattern names
MOST_BOUNDED = 1_000  # a repeat of at most so many takes linear time,
MOST_NESTED = 9  # and if another is within it
WHOLE = 0  # the number of the whole pattern among its atomic groups

Condition = re.Pattern[str]  # of a sign or of a point between two


@dataclass(eq=False)
class Node:
    """A point of a pattern: where it reads a sign, where a condition must hold, or a group ends."""

    next: list["Node"]
    test: Condition | None = None
    reads: bool = False
    groups: frozenset[int] = frozenset()  # the atomic groups around it
    ends: int | None = None  # the group that ends here


class Edge(NamedTuple):
    """A way to the next place that reads, or to the end of a group."""

    target: Node
    conditions: tuple[Condition, ...]
    left: frozenset[int]  # the groups that end on the way


@dataclass
class Scope:
    flags: tuple[int, int] = (0, 0)  # set and removed by groups such as (?i:…)
    groups: frozenset[int] = frozenset()


class Automaton:
    """The places of a pattern that read a sign, and the ways between them."""

    def __init__(self, pattern, methods, most_bounded):
        tree = sre_parse.parse(pattern.pattern, pattern.flags)
        self.state, self.group_count, self.most_bounded = tree.state, WHOLE, most_bounded
        self.places = []
        self.alone = {}
        end = Node([], ends=None if "fullmatch" in methods else WHOLE)
        start = self.build(tree, end, Scope())
        if not methods or methods - {"match", "fullmatch"}:
            before = self.read(c.NOT_LITERAL, 0, start, Scope())
            before.next.append(before)
        self.edges = {place: [*edges_from(place)] for place in self.places}
        self.signs = self.distinct_signs(repr(tree))
        self.read_by = {place: [*filter(place.test.match, self.signs)] for place in self.places}

    def build(self, tree, then, scope):
        """The first node of a part of the pattern."""
        for operation, value in reversed(tree):
            then = self.item(operation, value, then, scope)
        return then

    def item(self, operation, value, then, scope):
        if operation is c.SUBPATTERN:
            _, on, off, tree = value
            flags = (scope.flags[0] & ~off | on, scope.flags[1] & ~on | off)
            return self.build(tree, then, replace(scope, flags=flags))
        if operation is c.BRANCH:
            return Node([self.build(tree, then, scope) for tree in value[1]])
        if operation is c.ATOMIC_GROUP:
            return self.atomic(value, [then], scope)
        if operation is c.POSSESSIVE_REPEAT:
            if value[1] is c.MAXREPEAT and value[2].getwidth() == (1, 1):
                then = self.assertion(c.ASSERT_NOT, 1, value[2], then, scope)
            return self.atomic([(c.MAX_REPEAT, value)], [then], scope)
        if operation in (c.MAX_REPEAT, c.MIN_REPEAT):
            return self.repeat(*value, then, scope)
        if operation in (c.ASSERT, c.ASSERT_NOT):
            return self.assertion(operation, *value, then, scope)
        if operation is c.GROUPREF:
            return Node([self.read(c.NOT_LITERAL, 0, then, scope), then])
        if operation is c.AT:
            return Node([then], self.compiled(operation, value, scope))
        return self.read(operation, value, then, scope)

    def read(self, operation, value, then, scope):
        test = self.compiled(operation, value, scope)
        self.places.append(Node([then], test, reads=True, groups=scope.groups))
        return self.places[-1]

    def atomic(self, tree, then, scope):
        self.group_count += 1
        within = replace(scope, groups=scope.groups | {self.group_count})
        return self.build(tree, Node(then, ends=self.group_count), within)

    def assertion(self, operation, way, tree, then, scope):
        ahead = [self.atomic(tree, [], scope)] if way > 0 else []
        if operation is c.ASSERT and tree.getwidth()[1] > 1:
            tree = tree[:1] if way > 0 else tree[-1:]  # if all of it holds, this does too
        if tree.getwidth()[1] <= 1:
            then = Node([then], self.compiled(operation, (way, tree), scope))
        return Node([*ahead, then])

    def repeat(self, least, most, tree, then, scope):
        if most > self.most_bounded:
            again = Node([])
            again.next = [self.build(tree, again, scope), then]
            return again.next[0] if least else again
        first = then
        for number in reversed(range(min(most, 2))):  # two stand for more
            first = self.build(tree, first, scope)
            if number >= least:
                first = Node([first, then])
        return first

    def compiled(self, operation, value, scope):
        """An item of the tree as a pattern of its own."""
        key = repr((operation, value, scope.flags))
        if key not in self.alone:
            item = sre_parse.SubPattern(self.state, [(operation, value)])
            group = (c.SUBPATTERN, (None, *scope.flags, item))
            self.alone[key] = sre_compile.compile(sre_parse.SubPattern(self.state, [group]))
        return self.alone[key]

    def distinct_signs(self, tree):
        """One of all signs that nothing in the pattern tells apart."""
        numbers = re.findall(r"LITERAL, (\d+)|RANGE, \((\d+), (\d+)\)", tree)
        signs = {*SIGNS, *(chr(int(number)) for found in numbers for number in found if number)}
        tests = [*product([*self.alone.values(), re.compile(r"\w")], (0, 1))]
        kinds = {
            tuple(test.match(f"{sign}\0", at) is None for test, at in tests): sign
            for sign in sorted(signs)
        }
        return [*kinds.values()]


class Search:
    """A search for slow texts within some atomic groups: to leave one is to forget its choices."""

    def __init__(self, automaton, groups):
        self.automaton, self.groups = automaton, groups
        self.innermost = max(groups, default=WHOLE)
        places = [place for place in automaton.places if groups <= place.groups]
        self.edges = {
            place: [e for e in automaton.edges[place] if e.target.reads and not e.left & groups]
            for place in places
        }
        self.after = {place: self.reached(place) for place in places}
        self.ways = cache(self.ways)
        self.steps = cache(self.steps)

    def reached(self, place):
        seen = set()
        left = [place]
        while left:
            new = {edge.target for edge in self.edges[left.pop()]} - seen
            seen |= new
            left += new
        return seen

    def between(self, one, two):
        return {place for place in self.after[one] if two in self.after[place]}

    def slow_text(self):
        loops = {place: self.between(place, place) for place in self.after}
        is_nested = self.automaton.most_bounded == MOST_NESTED
        for one in filter(loops.get, loops):
            targets = {one} if is_nested else filter(loops.get, self.after[one])
            for two in targets if one.groups == self.groups else ():
                text = self.text((one, two), (one, two), [loops[one], loops[two]])
                if text and one is not two:
                    allowed = [loops[one], self.between(one, two), loops[two]]
                    text = self.text((one, one, two), (one, two, two), allowed)
                if text and not self.may_end(two, 2 * text):
                    return text
        return ""

    def text(self, start, goal, allowed):
        """A text that leads from all places of `start` to those of `goal`, by paths that part.

        A state is the places of the paths, the sign before, and whether the paths have parted.
        """
        read_by = self.automaton.read_by
        common = [sign for sign in read_by[start[0]] if sign in read_by[start[-1]]]
        for sign in dict.fromkeys(self.before(start, sign) for sign in common):
            wanted = goal, self.before(goal, sign), True
            texts = {(start, sign, False): ""}
            left = deque(texts)
            while left:
                places, before, parted = state = left.popleft()
                for (targets, *rest, parts), read in self.steps(places, before).items():
                    following = (targets, *rest, parted or parts)
                    if following not in texts and all(map(contains, allowed, targets)):
                        texts[following] = texts[state] + read
                        left.append(following)
                if wanted in texts:
                    return texts[wanted]
        return ""

    def before(self, places, sign):
        """The sign before, if a condition may look back at it."""
        looks = any(edge.conditions for place in places for edge in self.edges[place])
        return sign if looks else ""

    def steps(self, places, before):
        """The places that come next, the sign before them, and whether the paths part there → the
        sign.
        """
        steps = {}
        ways = [self.ways(place, before) for place in places]
        for sign in min(ways, key=len):
            for edges in product(*[edges.get(sign, ()) for edges in ways]):
                targets = tuple(edge.target for edge in edges)
                parts = edges[0] is not edges[1]
                steps.setdefault((targets, self.before(targets, sign), parts), sign)
        return steps

    def ways(self, place, before):
        ways = {}
        for edge in self.edges[place]:
            for sign in self.automaton.read_by[edge.target]:
                if holds(edge.conditions, before, sign):
                    ways.setdefault(sign, []).append(edge)
        return ways

    def ends(self, place, before, sign):
        return any(
            edge.target.ends == self.innermost and holds(edge.conditions, before, sign)
            for edge in self.automaton.edges[place]
        )

    def may_end(self, place, text):
        """Whether the pattern or the group may end in a text, or after it whatever follows."""
        places, before = {place}, text[-1]
        for sign in text:
            if any(self.ends(place, before, sign) for place in places):
                return True
            edges = [e for place in places for e in self.ways(place, before).get(sign, ())]
            places, before = {edge.target for edge in edges}, sign
        others = [
            (place, {*self.automaton.signs, ""} - {*self.ways(place, before)}) for place in places
        ]
        return any(all(self.ends(place, before, sign) for sign in signs) for place, signs in others)


def edges_from(node, conditions=(), left=frozenset(), passed=frozenset()):
    for following in node.next:
        if following.reads or following.ends is not None:
            yield Edge(following, conditions, left)
        if not following.reads and following not in passed:
            more = (following.test,) if following.test else ()
            ended = left if following.ends is None else left | {following.ends}
            yield from edges_from(following, conditions + more, ended, passed | {following})


@cache
def holds(conditions, before, after):
    text = before + after + ("\0" if after else "")
    return all(condition.match(text, len(before)) for condition in conditions)


def slow_text(pattern, methods):
    """A text that takes a pattern more than linear time when it is repeated; "" if none does."""
    for most_bounded in (MOST_BOUNDED, MOST_NESTED):
        automaton = Automaton(pattern, methods, most_bounded)
        for groups in {place.groups for place in automaton.places}:
            text = Search(automaton, groups).slow_text()
            if text:
                return text
    return ""
