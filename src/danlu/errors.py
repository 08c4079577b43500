"""One exception tree; each leaf is a Kubernetes Status reason.

ApiError
├── BadRequest            400   what was sent cannot be understood
├── Unauthorized          401   who is asking is not known
├── Forbidden             403   who is asking may not
├── NotFound              404
├── MethodNotAllowed      405
├── NotAcceptable         406
├── AlreadyExists         409
├── Conflict              409   built on an old resourceVersion, or another field manager owns the field
├── Expired               410   a watch or a continue token older than the history kept
├── RequestTooLarge       413
├── UnsupportedMediaType  415
├── Invalid               422   understood, and not valid; carries one cause for each field
├── TooManyRequests       429
├── InternalError         500
├── ServiceUnavailable    503
├── Timeout               504
└── InsufficientStorage   507   the store has no room; deletes work
"""

from __future__ import annotations

from typing import Any, ClassVar


def details_of(resource: str, name: str, group: str = "", **more: Any) -> dict[str, Any]:
    """What a Status says about the object it is about."""
    details = {"name": name, "kind": resource, **more}
    if group:
        details["group"] = group
    return details


def _shown(resource: str, name: str, group: str) -> str:
    return f'{resource}.{group} "{name}"' if group else f'{resource} "{name}"'


class ApiError(Exception):
    """Leaves the API in one shape: a `v1 Status` (see `status`)."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(self, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or {}
        self.metadata: dict[str, Any] = {}  # of the Status: how to go on with a list (`continue`)
        self._detailed = details is not None  # Kubernetes writes empty details, too, where it does not know more

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self._detailed:
            body["details"] = self.details
        body["code"] = self.code
        return body


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"

    @classmethod
    def of(cls, resource: str, name: str, group: str = "") -> NotFound:
        return cls(f"{_shown(resource, name, group)} not found", details_of(resource, name, group))

    @classmethod
    def of_path(cls) -> NotFound:
        """The path is not served, below a group and version that are."""
        return cls("the server could not find the requested resource", {})


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"

    def __init__(self, message: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message or "the server does not allow this method on the requested resource", details or {})


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"

    @classmethod
    def of(cls, resource: str, name: str, group: str = "", *, deleting: bool = False) -> AlreadyExists:
        before = "object is being deleted: " if deleting else ""
        return cls(f"{before}{_shown(resource, name, group)} already exists", details_of(resource, name, group))


class Conflict(ApiError):
    code, reason = 409, "Conflict"

    @classmethod
    def of(cls, resource: str, name: str, group: str, why: str) -> Conflict:
        text = f"Operation cannot be fulfilled on {_shown(resource, name, group)}: {why}"
        return cls(text, details_of(resource, name, group))

    @classmethod
    def of_version(cls, resource: str, name: str, group: str = "") -> Conflict:
        """The change was built on a version that is not the newest any more."""
        why = "the object has been modified; please apply your changes to the latest version and try again"
        return cls.of(resource, name, group, why)


class Expired(ApiError):
    code, reason = 410, "Expired"


class RequestTooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    code, reason = 500, "InternalError"


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    code, reason = 504, "Timeout"


class InsufficientStorage(ApiError):
    code, reason = 507, "InsufficientStorage"


BY_REASON: dict[str, type[ApiError]] = {leaf.reason: leaf for leaf in ApiError.__subclasses__()}
BY_CODE: dict[int, type[ApiError]] = {leaf.code: leaf for leaf in reversed(ApiError.__subclasses__())}


LONGEST_MESSAGE = 32_768
"""Characters of what a server said, for programs: as Kubernetes bounds the message of a condition, where it may end up.
A refusal quotes what was refused, however long that is."""


def from_status(code: int, body: dict[str, Any]) -> ApiError:
    """The exception for a Status that a server answered; the client's half of `ApiError.status`."""
    leaf = BY_REASON.get(body.get("reason", "")) or BY_CODE.get(code, ApiError)
    return leaf((body.get("message") or f"the server answered {code}")[:LONGEST_MESSAGE], body.get("details"))
