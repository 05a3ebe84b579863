"""A site's robots.txt: addresses closed to programs, and the delay between two requests.

The standard library reads the file, Crawl-delay (whole seconds) included.
"""

from __future__ import annotations

from urllib.parse import urljoin
from urllib.robotparser import RobotFileParser

from pipeline.arxiv.rate_limited_client import Answer, RateLimitedClient
from pipeline.errors import PermanentFailure


class Robots:
    """The rules of one site for one agent. `delay` is in seconds; 0 where the file has none."""

    def __init__(self, text: str, agent: str) -> None:
        self._parser, self._agent = RobotFileParser(), agent
        self._parser.parse(text.splitlines())
        self.delay = float(self._parser.crawl_delay(agent) or 0)

    def allows(self, address: str) -> bool:
        """Whether programs may request an address."""
        return self._parser.can_fetch(self._agent, address)


def fetch_robots(client: RateLimitedClient, base: str, user_agent: str) -> Robots:
    """The rules of the site of an address; a site without robots.txt has none.

    Raises as `RateLimitedClient.get` does, and PermanentFailure where the site denies access to the file (401, 403).
    """
    address = urljoin(base, "/robots.txt")

    def read(answer: Answer) -> str:
        if answer.status in (401, 403):
            raise PermanentFailure(f"{address} answers with status {answer.status}: this site wants no programs")
        return answer.body.decode("utf-8", "replace") if answer.status == 200 else ""

    return Robots(client.get(address, read), next(iter(user_agent.split()), "citeloom"))
