from __future__ import annotations

from danlu.meta import names


def test_labels_and_subdomains() -> None:
    assert names.dns_label("web-1") == []
    assert names.dns_label("a.b") == ["must not contain dots"]
    assert names.dns_label("A") == [
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
        "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    ]
    assert names.dns_label("a" * 64) == ["must be no more than 63 characters"]
    assert names.dns_subdomain("a.b") == []
    assert "example.com" in names.dns_subdomain("a_b")[0]
    assert names.dns_subdomain("a\n") != []


def test_qualified_names() -> None:
    assert names.qualified_name("app.kubernetes.io/name") == []
    assert names.qualified_name("/name") == ["prefix part must be non-empty"]
    assert names.qualified_name("a" * 64) == ["name part must be no more than 63 bytes"]
    assert names.qualified_name("a/b/c")[0].startswith("a valid label key must consist")
    assert len(names.qualified_name("")) == 2


def test_generate_name_may_end_in_a_dash() -> None:
    assert not names.as_dns_subdomain("web-", True)
    assert names.as_dns_subdomain("web-", False)


def test_path_segments() -> None:
    assert names.path_segment("system:node") == []
    assert names.path_segment("..") == ["may not be '..'"]
    assert names.path_segment("a/b%") == ["may not contain '/'", "may not contain '%'"]


def test_ports_and_keys() -> None:
    assert names.port_name("http") == []
    assert names.port_name("80") == ["must contain at least one letter (a-z)"]
    assert names.port_number(0) == ["must be between 1 and 65535, inclusive"]
    assert names.config_key("..a") == ["must not start with '..'"]
    assert names.relaxed_environment_name("1A") == []
    assert names.environment_name("1A") != []
