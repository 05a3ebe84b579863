"""Forms whose fields are the query parameters of an address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.errors import SettingError

# Of a parameter that takes several.
_MOST_VALUES = 50


class AddressForm(BaseModel):
    """The query parameters of an address, which are also the fields of an HTML form.

    separators: field that takes several values → their separator in a text; None is white space.
    """

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True, validate_by_name=True)

    separators: ClassVar[Mapping[str, str | None]] = {}

    @classmethod
    def read(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """Read the query parameters of an address. Empty values count as absent, since a browser
        sends empty fields too.

        Raises SettingError for an unknown name, a wrong number, or a text that is too long.
        """
        names = [field.alias or name for name, field in cls.model_fields.items()]
        values: dict[str, Any] = {}
        for name, text in pairs:
            if name not in names:
                raise SettingError(
                    f"{name[:50]!r} is not a parameter here: there are {', '.join(names)}"
                )
            if name in cls.separators:
                parts = [part.strip() for part in text.split(cls.separators[name])]
                parts = [part for part in parts if part]
                values[name] = (*values.get(name, ()), *parts)
                if len(values[name]) > _MOST_VALUES:
                    raise SettingError(f"{name} has more than {_MOST_VALUES} values: give fewer")
            elif text.strip():
                values[name] = text
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingError(
                f"{first['loc'][0]} is {str(first['input'])[:50]!r}: {first['msg']}"
            ) from error

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values of the fields that differ from their default, for an address."""
        pairs: list[tuple[str, str]] = []
        for name, value in self.model_dump(by_alias=True, exclude_defaults=True).items():
            if isinstance(value, tuple):
                pairs += [(name, text) for text in value]
            else:
                pairs.append((name, "1" if value is True else str(value)))
        return pairs
