from __future__ import annotations

import pytest

from danlu.embedded.apiserver.negotiation import DuplicateKeys, Wanted, decode_body, encode, parse_accept
from danlu.errors import BadRequest, NotAcceptable, UnsupportedMediaType

KUBECTL_GET = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("", Wanted()),
        ("*/*", Wanted()),
        ("application/json", Wanted()),
        ("application/yaml", Wanted(encoding="yaml")),
        ("application/vnd.kubernetes.protobuf, application/json", Wanted()),
        ("application/cbor,application/yaml;q=0.5,application/json;q=0.9", Wanted()),
        (KUBECTL_GET, Wanted("table", "v1")),
        ("application/json;as=Table;g=meta.k8s.io;v=v9,application/json", Wanted()),
        ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Wanted("partial", "v1")),
        (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
            Wanted("discovery", "v2"),
        ),
        ("application/json;pretty=1", Wanted(pretty=True)),
    ],
)
def test_the_first_form_that_can_be_made_wins(header: str, wanted: Wanted) -> None:
    assert parse_accept(header) == wanted


@pytest.mark.parametrize("header", ["text/html", "application/vnd.kubernetes.protobuf", "application/json;as=Wood"])
def test_nothing_that_can_be_made(header: str) -> None:
    with pytest.raises(NotAcceptable, match="only the following media types are accepted: application/json"):
        parse_accept(header)


def test_yaml_is_read_as_kubernetes_reads_it() -> None:
    text = b"a: 1e3\nb: 2020-01-01\nc: 12:30:45\nd: 0777\ne: yes\nf: ~\ng: 0x10\nh: [&x {k: 1}, *x]\n5: five\n"
    body = decode_body("application/yaml", text, DuplicateKeys([]))
    assert body == {
        "a": 1000.0, "b": "2020-01-01", "c": "12:30:45", "d": 511, "e": True, "f": None, "g": 16,
        "h": [{"k": 1}, {"k": 1}], "5": "five",
    }  # fmt: skip
    assert body["h"][0] is not body["h"][1]


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n".encode() for i in range(8)
)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (BOMB, "excessive aliasing"),
        (b"a: &a [*a]", "contains itself"),
        (b"a: [", "yaml: line"),
        (b"a: .nan", "unsupported value: NaN"),
        (b"[" * 5000 + b"]" * 5000, "yaml"),
        (b"x: \xff", "yaml"),
        (b"!!python/object/apply:os.system [ls]", "yaml"),
    ],
)
def test_bad_yaml_is_a_bad_request(body: bytes, text: str) -> None:
    with pytest.raises(BadRequest, match=text):
        decode_body("application/yaml", body, DuplicateKeys([]))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "unexpected end of JSON input (<empty>)"),
        (b"{", "unexpected end of JSON input ({)"),
        (b'{"a":NaN}', "invalid character 'N' looking for beginning of value"),
        (b"[]", "json: cannot unmarshal array into Go value"),
        (b'"x"', "json: cannot unmarshal string into Go value"),
        (b"[" * 3000 + b"]" * 3000, "json parse error"),
    ],
)
def test_bad_json_is_a_bad_request(body: bytes, text: str) -> None:
    with pytest.raises(BadRequest) as found:
        decode_body("application/json", body, DuplicateKeys([]))
    assert text in found.value.message


def test_duplicate_keys_are_refused_warned_of_or_ignored() -> None:
    body = b'{"apiVersion":"v1","kind":"Pod","spec":{"a":1,"b":[{"x":1,"x":2}],"a":2}}'
    with pytest.raises(BadRequest) as found:
        decode_body("application/json", body, DuplicateKeys([], "Strict"))
    assert found.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'duplicate field "spec.b[0].x", duplicate field "spec.a"'
    )
    warnings: list[str] = []
    assert decode_body("application/json", body, DuplicateKeys(warnings, "Warn"))["spec"]["a"] == 2
    assert warnings == ['duplicate field "spec.b[0].x"', 'duplicate field "spec.a"']
    assert decode_body("application/json", body, DuplicateKeys([], "Ignore"))["spec"]["a"] == 2
    yaml_warnings: list[str] = []
    decode_body("application/yaml", b"a: 1\na: 2\n", DuplicateKeys(yaml_warnings))
    assert yaml_warnings == ['line 2: key "a" already set in map']


def test_strings_that_look_like_keys_are_not_counted() -> None:
    warnings: list[str] = []
    decode_body("application/json", b'{"a":"\\"b\\": \\"a\\":","c":["x" , "y"]}', DuplicateKeys(warnings, "Strict"))
    assert warnings == []


def test_other_media_types() -> None:
    with pytest.raises(UnsupportedMediaType, match="accepted media types include: application/json, application/yaml"):
        decode_body("text/plain", b"k8s", DuplicateKeys([]))


def test_yaml_answers() -> None:
    assert encode({"b": [1], "a": "x"}, Wanted(encoding="yaml")) == b"a: x\nb:\n- 1\n"


def test_what_could_not_be_written_again_is_not_read() -> None:
    deep = b'{"a":' * 240 + b"1" + b"}" * 240
    with pytest.raises(BadRequest, match="exceeded max depth"):
        decode_body("application/json", deep, DuplicateKeys([]))
    with pytest.raises(BadRequest, match="exceeded max depth"):
        decode_body("application/yaml", deep, DuplicateKeys([]))
    wide = b"[" + b",".join([b"{}"] * 500) + b"]"
    assert len(decode_body("application/json", wide, DuplicateKeys([]), patch=True)) == 500
