"""Patterns behave as in Go: the tables were asked of Go 1.26 (MatchString, or the error without its quotation)."""

from __future__ import annotations

import pytest

from danlu.meta.goregex import PatternError, compile_go

MATCHES = [
    ("(?i)ABC", "xabcx"), ("^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$", "ResourceFlavor"), ("(?i)straße", "STRAßE"),
    ("(?i)[k]", "K"), ("(?i)ſ", "S"), ("(?i:a)b", "Ab"), ("[^a-z]", "abC"), (r"[^\D]", "a1"), (r"[^\S]", " "),
    (r"[^\W]", "_"), (r"[^\w]", "é"), ("^[^/]+$", "a\nb"), ("[^[:alpha:]]", "ab1"), ("[[:word:]]", "_"),
    (r"^\pL+$", "Grüße"), (r"^\pL+$", "丹炉"), (r"[^\pL]", "ab1"), (r"\p{Han}", "丹"), (r"[\p{Han}a]", "a"),
    (r"\p{Greek}", "α"), (r"(?i)\p{Lu}", "a"), (r"[^\P{Lu}]", "A"), ("(?s)^.$", "\n"), ("^.$", "丹"),
    ("(?m)^b$", "a\nb"), (r"\Aa\z", "a"), (r"\bfoo\b", "é foo"), ("a{,2}", "a{,2}"), ("a*?", "b"), ("(?U)a*", "b"),
    ("(?P<n>a)", "a"), ("(?<n>a)", "a"), ("(?P<n>a)(?P<n>b)", "ab"), (r"\Q.+\E", ".+"), (r"\x41", "A"),
    (r"\x{4e39}", "丹"), (r"\101", "A"), (r"\a", "\x07"), (r"\\C", r"\C"), (r"\z", ""), ("[]a]", "]"), ("|", "a"),
    ("", "a"), ("a(?i)b", "aB"), (r"\_", "_"), ("é+", "éé"), ("[é-ü]", "ö"), ("$^", ""), ("(?:)", ""), ("^*", "a"),
    (r"\pN", "½"), (r"\p{Nd}", "٣"), (r"[\pL\pN-]", "-"), (r"\p{L}\p{M}*", "é"), ("(?i)µ", "μ"),
    (r"(?i)\x{212a}", "k"), (r"\p{Any}", "a"), (r"\p{Latin}", "ı"),
]  # fmt: skip
DOES_NOT_MATCH = [
    ("^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$", "9x"), ("(?i)straße", "STRASSE"), ("(?-i)a", "A"), ("(?i:a)b", "AB"),
    ("[^a-z]", "abc"), ("(?i)[^a-z]", "ABC"), ("(?i)[^k]", "K"), (r"[^\d]", "123"), (r"[^\s]", " \t"),
    ("^[^/]+$", "a/b"), ("[[:^alpha:]]", "abc"), ("[[:alpha:]]", "é"), (r"^\pL+$", "a1"), (r"\PL", "abc"),
    (r"[^\pL]", "abc"), (r"\p{Lu}", "a"), (r"\p{^Lu}", "A"), (r"\P{Han}", "丹"), (r"(?i)\PL", "a"), (r"[^\PL]", "1"),
    ("^.$", "\n"), ("^b$", "a\nb"), ("a$", "a\n"), (r"\bé", "é"), (r"\d", "٣"), (r"\w", "é"), (r"\s", "\x0b"),
    (r"\s", "\xa0"), ("a{2,3}", "a"), ("x{1000}", "x"), (r"\Q.+\E", "aa"), ("[^]a]", "]"), ("[[=a=]]", "a"),
    ("(?i)(?-i:a)", "A"), ("(?i)İ", "i"),
]  # fmt: skip
REFUSED = [
    ("x{1001}", "invalid repeat count"), ("(a{100}){100}", "invalid repeat count"),
    ("a**", "invalid nested repetition operator"), ("a++", "invalid nested repetition operator"),
    ("(?=a)", "invalid or unsupported Perl syntax"), ("(?!a)", "invalid or unsupported Perl syntax"),
    ("(?P=n)", "invalid or unsupported Perl syntax"), (r"\1", "invalid escape sequence"),
    (r"(a)\1", "invalid escape sequence"), (r"\8", "invalid escape sequence"), (r"\C", "invalid escape sequence"),
    (r"\Z", "invalid escape sequence"), (r"\h", "invalid escape sequence"), (r"[a-\d]", "invalid escape sequence"),
    ("[z-a]", "invalid character class range"), ("[]", "missing closing ]"), ("(", "missing closing )"),
    (")", "unexpected )"), ("*", "missing argument to repetition operator"),
    ("a|*", "missing argument to repetition operator"), ("\\", "trailing backslash at end of expression"),
    ("[[:foo:]]", "invalid character class range"), (r"\p{Foo}", "invalid character class range"),
    (r"\pX", "invalid character class range"), ("(?z)a", "invalid or unsupported Perl syntax"),
    ("(?i", "invalid or unsupported Perl syntax"), ("(?#c)a", "invalid or unsupported Perl syntax"),
    ("(?>a)", "invalid or unsupported Perl syntax"), (r"[\b]", "invalid escape sequence"),
    (r"\é", "invalid escape sequence"), (r"\u0041", "invalid escape sequence"),
    (r"\x{110000}", "invalid escape sequence"), (r"\p{L&}", "invalid character class range"),
    (r"\p{Script=Han}", "invalid character class range"),
]  # fmt: skip

# Go knows these names of classes since 1.25, RE2 does not. Whoever writes one is told so when the CRD is created.
NOT_YET = [r"\p{LC}", r"\p{Letter}", r"\p{lu}", r"\p{ASCII}", r"\p{Cn}"]


@pytest.mark.parametrize(("pattern", "text"), MATCHES)
def test_a_match_of_go_is_one(pattern: str, text: str) -> None:
    assert compile_go(pattern).search(text) is not None


@pytest.mark.parametrize(("pattern", "text"), DOES_NOT_MATCH)
def test_what_go_does_not_match_is_none(pattern: str, text: str) -> None:
    assert compile_go(pattern).search(text) is None


@pytest.mark.parametrize(("pattern", "why"), REFUSED)
def test_what_go_refuses_is_refused_in_its_words(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=r"^error parsing regexp: ") as refused:
        compile_go(pattern)
    assert str(refused.value).removeprefix("error parsing regexp: ").startswith(why)


@pytest.mark.parametrize("pattern", NOT_YET)
def test_newer_names_of_classes_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="invalid character class range"):
        compile_go(pattern)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "(.*)*=", "^(a?){500}a{500}$"])
def test_a_hostile_pattern_ends(pattern: str) -> None:
    """An engine that backtracks would be at it for longer than the test may take."""
    assert compile_go(pattern).search("a" * 100_000 + "!") is None
