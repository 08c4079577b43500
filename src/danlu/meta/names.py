"""Which names Kubernetes accepts, and its own words when it does not.

Each check returns a list of texts, empty when the name is good. The checks that run on every write are memoised:
names and label keys repeat.
"""

from __future__ import annotations

import re

from danlu.meta.textcache import cached

Texts = tuple[str, ...]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = f"{_LABEL}(\\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_ENV = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"
_HTTP_HEADER = "[-A-Za-z0-9]+"
_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"

_label = re.compile(_LABEL)
_subdomain = re.compile(_SUBDOMAIN)
_label_1035 = re.compile(_LABEL_1035)
_wildcard = re.compile(f"\\*\\.{_SUBDOMAIN}")
_qualified = re.compile(_QUALIFIED)
_label_value = re.compile(_LABEL_VALUE)
_env = re.compile(_ENV)
_config_key = re.compile(_CONFIG_KEY)
_percent = re.compile(_PERCENT)
_http_header = re.compile(_HTTP_HEADER)
_c_identifier = re.compile(_C_IDENTIFIER)
_port_name = re.compile("[-a-z0-9]+")


def regex_text(text: str, pattern: str, *examples: str) -> str:
    if not examples:
        return f"{text} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def max_length_text(length: int) -> str:
    return f"must be no more than {length} characters"


def between_text(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


_LABEL_TEXT = regex_text(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_TEXT = regex_text(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_LABEL_1035_TEXT = regex_text(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_WILDCARD_TEXT = regex_text(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    f"\\*\\.{_SUBDOMAIN}",
    "*.example.com",
)
_QUALIFIED_TEXT = regex_text(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_TEXT = regex_text(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_ENV_TEXT = regex_text(
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
    "and must not start with a digit",
    _ENV,
    "my.env-name",
    "MY_ENV.NAME",
    "MyEnvName1",
)
_CONFIG_KEY_TEXT = regex_text(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


@cached(8192)
def _dns_label(name: str) -> Texts:
    texts = []
    if _size(name) > 63:
        texts.append(max_length_text(63))
    if not _label.fullmatch(name):
        texts.append("must not contain dots" if _subdomain.fullmatch(name) else _LABEL_TEXT)
    return tuple(texts)


@cached(8192)
def _dns_subdomain(name: str) -> Texts:
    texts = []
    if _size(name) > 253:
        texts.append(max_length_text(253))
    if not _subdomain.fullmatch(name):
        texts.append(_SUBDOMAIN_TEXT)
    return tuple(texts)


@cached(8192)
def _qualified_name(name: str) -> Texts:
    texts: list[str] = []
    prefix, slash, last = name.rpartition("/")
    if "/" in prefix:
        form = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a valid label key {_QUALIFIED_TEXT} {form}",)
    if slash and not prefix:
        texts.append("prefix part must be non-empty")
    elif slash:
        if _size(prefix) > 253:
            texts.append("prefix part must be no more than 253 bytes")
        if not _subdomain.fullmatch(prefix):
            texts.append(f"prefix part {_SUBDOMAIN_TEXT}")
    if not last:
        texts.append("name part must be non-empty")
    elif _size(last) > 63:
        texts.append("name part must be no more than 63 bytes")
    if not _qualified.fullmatch(last):
        texts.append(f"name part {_QUALIFIED_TEXT}")
    return tuple(texts)


@cached(8192)
def _label_value_texts(value: str) -> Texts:
    texts = []
    if _size(value) > 63:
        texts.append("must be no more than 63 bytes")
    if not _label_value.fullmatch(value):
        texts.append(_LABEL_VALUE_TEXT)
    return tuple(texts)


def dns_label(name: str) -> list[str]:
    return list(_dns_label(name))


def dns_subdomain(name: str) -> list[str]:
    return list(_dns_subdomain(name))


def qualified_name(name: str) -> list[str]:
    """A label key, an annotation key in lower case, a finalizer: `name` or `prefix/name`."""
    return list(_qualified_name(name))


def label_value(value: str) -> list[str]:
    return list(_label_value_texts(value))


def dns1035_label(name: str) -> list[str]:
    texts = []
    if _size(name) > 63:
        texts.append(max_length_text(63))
    if not _label_1035.fullmatch(name):
        texts.append(_LABEL_1035_TEXT)
    return texts


def wildcard_dns_subdomain(name: str) -> list[str]:
    texts = []
    if _size(name) > 253:
        texts.append(max_length_text(253))
    if not _wildcard.fullmatch(name):
        texts.append(_WILDCARD_TEXT)
    return texts


def port_number(port: int) -> list[str]:
    return in_range(port, 1, 65535)


def in_range(value: int, low: int, high: int) -> list[str]:
    return [] if low <= value <= high else [between_text(low, high)]


def port_name(name: str) -> list[str]:
    """A IANA service name."""
    texts = []
    if _size(name) > 15:
        texts.append(max_length_text(15))
    if not _port_name.fullmatch(name):
        texts.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in name):
        texts.append("must contain at least one letter (a-z)")
    if "--" in name:
        texts.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        texts.append("must not begin or end with a hyphen")
    return texts


def environment_name(name: str) -> list[str]:
    return ([] if _env.fullmatch(name) else [_ENV_TEXT]) + _directory_prefix(name)


def relaxed_environment_name(name: str) -> list[str]:
    """What Kubernetes accepts since 1.34: any printable ASCII but '='."""
    if not name:
        return ["environment variable name must be non-empty"]
    if name.isascii() and name.isprintable() and "=" not in name:
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def config_key(key: str) -> list[str]:
    """A key of a ConfigMap or a Secret."""
    texts = []
    if _size(key) > 253:
        texts.append(max_length_text(253))
    if not _config_key.fullmatch(key):
        texts.append(_CONFIG_KEY_TEXT)
    return texts + _directory_prefix(key)


def percent(text: str) -> list[str]:
    if _percent.fullmatch(text):
        return []
    words = "a valid percent string must be a numeric string followed by an ending '%'"
    return [regex_text(words, _PERCENT, "1%", "93%")]


def http_header_name(name: str) -> list[str]:
    if _http_header.fullmatch(name):
        return []
    return [
        regex_text("a valid HTTP header must consist of alphanumeric characters or '-'", _HTTP_HEADER, "X-Header-Name")
    ]


def c_identifier(name: str) -> list[str]:
    if _c_identifier.fullmatch(name):
        return []
    words = (
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
        "characters or '_'"
    )
    return [regex_text(words, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName")]


def _directory_prefix(name: str) -> list[str]:
    if name == ".":
        return ["must not be '.'"]
    if name == "..":
        return ["must not be '..'"]
    return ["must not start with '..'"] if name.startswith("..") else []


def path_segment(name: str, prefix: bool = False) -> list[str]:
    """Names of kinds whose names are free but for what would break a URL (RBAC)."""
    if not prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


def is_valid_path_segment(name: str) -> bool:
    return name not in (".", "..") and "/" not in name and "%" not in name


def _without_trailing_dash(name: str) -> str:
    """A generateName may end in '-': what follows makes it a good name."""
    return f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name


# -- for `ServedKind.name_errors`: (name, is a generateName prefix) -> texts


def as_dns_subdomain(name: str, prefix: bool = False) -> Texts:
    return _dns_subdomain(_without_trailing_dash(name) if prefix else name)


def as_dns_label(name: str, prefix: bool = False) -> Texts:
    return _dns_label(_without_trailing_dash(name) if prefix else name)


def as_dns1035_label(name: str, prefix: bool = False) -> list[str]:
    return dns1035_label(_without_trailing_dash(name) if prefix else name)


def as_path_segment(name: str, prefix: bool = False) -> list[str]:
    return path_segment(name, prefix)
