"""Volumes: exactly one source each, and paths that stay inside the volume."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from danlu.embedded.builtin._shared.podspec.environment import (
    VOLUME_FIELDS,
    field_reference_errors,
    resource_reference_errors,
)
from danlu.embedded.builtin._shared.podspec.volumepaths import mode_errors, no_backsteps, not_reserved
from danlu.embedded.builtin._shared.quantities import not_a_quantity, parsed
from danlu.embedded.builtin.core.claimrules import claim_spec_errors
from danlu.meta import names
from danlu.meta.fields import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from danlu.meta.kind import Object

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
ONLY_ONE = "may not specify more than 1 volume type"
CONFLICT = "conflicting duplicate paths"

Check = Callable[[Object, str], list[FieldError]]


def volume_errors(volumes: list[Object], path: str, pod_name: str = "") -> tuple[dict[str, Object], list[FieldError]]:
    """(the good volumes by name, what is wrong). `pod_name` names the claims of ephemeral volumes."""
    good: dict[str, Object] = {}
    errors: list[FieldError] = []
    made = {f"{pod_name}-{volume.get('name')}" for volume in volumes if pod_name and volume.get("ephemeral")}
    for index, volume in enumerate(volumes):
        where, name = f"{path}[{index}]", volume.get("name") or ""
        wrong = _source_errors(volume, where, POD_SOURCES)
        if not name:
            wrong.append(required(f"{where}.name"))
        else:
            wrong += [invalid(f"{where}.name", name, text) for text in names.dns_label(name)]
        if name in good:
            wrong.append(duplicate(f"{where}.name", name))
        if pod_name and name and volume.get("ephemeral") is not None:
            claim = f"{pod_name}-{name}"
            texts = names.dns_subdomain(claim)
            wrong += [invalid(f"{where}.name", name, f'PVC name "{claim}": {text}') for text in texts]
        if wrong:
            errors += wrong
        else:
            good[name] = volume
        claim_name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim_name in made:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{where}.persistentVolumeClaim.claimName", claim_name, text))
    return good, errors


def _source_errors(holder: Object, path: str, sources: dict[str, Check]) -> list[FieldError]:
    given = [name for name in sources if holder.get(name) is not None]
    if not given:
        return [required(path, "must specify a volume type")]
    errors = sources[given[0]](holder[given[0]], f"{path}.{given[0]}")
    return errors + [forbidden(f"{path}.{name}", ONLY_ONE) for name in given[1:]]


def persistent_source_errors(spec: Object, path: str) -> list[FieldError]:
    return _source_errors(spec, path, _PERSISTENT)


# -- one function for each source that has rules


def _needs(*fields: str) -> Check:
    def check(source: Object, path: str) -> list[FieldError]:
        return [required(f"{path}.{field}") for field in fields if not source.get(field)]

    return check


def _empty_dir(source: Object, path: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is None:
        return []
    amount = parsed(limit)
    if amount is None:
        return [not_a_quantity(f"{path}.sizeLimit", limit)]
    return (
        [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")] if amount.nano < 0 else []
    )


def _host_path(source: Object, path: str) -> list[FieldError]:
    if not source.get("path"):
        return [required(f"{path}.path")]
    errors = no_backsteps(source["path"], f"{path}.path")
    sort = source.get("type")
    if sort is not None and sort not in HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", sort, HOST_PATH_TYPES))
    return errors


def _local(source: Object, path: str) -> list[FieldError]:
    return no_backsteps(source["path"], f"{path}.path") if source.get("path") else [required(f"{path}.path")]


def _git(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("repository") else [required(f"{path}.repository")]
    return errors + no_backsteps(source.get("directory") or "", f"{path}.directory")


def _nfs(source: Object, path: str) -> list[FieldError]:
    errors = _needs("server", "path")(source, path)
    directory = source.get("path") or ""
    if not directory.startswith("/"):
        errors.append(invalid(f"{path}.path", directory, "must be an absolute path"))
    return errors


def _secret(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("secretName") else [required(f"{path}.secretName")]
    return errors + _files(source, path)


def _config_map(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("name") else [required(f"{path}.name")]
    return errors + _files(source, path)


def _files(source: Object, path: str) -> list[FieldError]:
    errors = mode_errors(source.get("defaultMode"), f"{path}.defaultMode")
    for index, item in enumerate(source.get("items") or ()):
        errors += _item_errors(item, f"{path}.items[{index}]")
    return errors


def _item_errors(item: Object, path: str) -> list[FieldError]:
    errors = _needs("key", "path")(item, path)
    errors += not_reserved(item.get("path") or "", f"{path}.path")
    return errors + mode_errors(item.get("mode"), f"{path}.mode")


def _downward(source: Object, path: str) -> list[FieldError]:
    errors = mode_errors(source.get("defaultMode"), f"{path}.defaultMode")
    for file in source.get("items") or ():
        errors += _downward_file(file, path)
    return errors


def _downward_file(file: Object, path: str) -> list[FieldError]:
    errors = [] if file.get("path") else [required(f"{path}.path")]
    errors += not_reserved(file.get("path") or "", f"{path}.path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        errors += field_reference_errors(field, VOLUME_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", text))
    elif resource is not None:
        errors += resource_reference_errors(resource, f"{path}.resourceFieldRef", in_volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + mode_errors(file.get("mode"), f"{path}.mode")


def _projected(source: Object, path: str) -> list[FieldError]:
    errors = mode_errors(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, each in enumerate(source.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        given = [name for name in _PROJECTIONS if each.get(name) is not None]
        for name in given:
            errors += _PROJECTIONS[name](each[name], where, path, taken)
        if len(given) > 1:
            errors.append(forbidden(where, "may not specify more than 1 volume type per source"))
    return errors


def _take(paths: Iterable[str], taken: set[str], shown: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for each in paths:
        if each in taken:
            errors.append(invalid(path, shown or each, CONFLICT))
        taken.add(each)
    return errors


def _projected_keys(kind: str) -> Callable[[Object, str, str, set[str]], list[FieldError]]:
    def check(source: Object, where: str, path: str, taken: set[str]) -> list[FieldError]:
        name = source.get("name") or ""
        errors = [] if name else [required(f"{where}.{kind}.name")]
        for index, item in enumerate(source.get("items") or ()):
            errors += _item_errors(item, f"{where}.{kind}.items[{index}]")
            if item.get("path"):
                errors += _take([item["path"]], taken, name, path)
        return errors

    return check


def _projected_downward(source: Object, where: str, path: str, taken: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for file in source.get("items") or ():
        errors += _downward_file(file, f"{where}.downwardAPI")
        if file.get("path"):
            errors += _take([file["path"]], taken, "", path)
    return errors


def _projected_token(source: Object, where: str, path: str, taken: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    seconds, field = source.get("expirationSeconds") or 0, f"{where}.serviceAccountToken.expirationSeconds"
    if seconds < 600:
        errors.append(invalid(field, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > 2**32:
        errors.append(invalid(field, seconds, "may not specify a duration larger than 2^32 seconds"))
    if not source.get("path"):
        return [*errors, required(f"{path}.path")]
    return errors + not_reserved(source["path"], f"{path}.path")


def _projected_bundle(source: Object, where: str, path: str, taken: set[str]) -> list[FieldError]:
    field = f"{where}.clusterTrustBundle"
    errors: list[FieldError] = []
    if source.get("name") is not None and source.get("signerName") is not None:
        errors.append(invalid(field, source, "only one of name and signerName may be used"))
    elif source.get("name") is None and source.get("signerName") is None:
        errors.append(required(field, "either name or signerName must be specified"))
    if not source.get("path"):
        errors.append(required(f"{field}.path"))
    errors += not_reserved(source.get("path") or "", f"{field}.path")
    return errors + _take([source.get("path") or ""], taken, "", path)


_PROJECTIONS = {
    "secret": _projected_keys("secret"),
    "configMap": _projected_keys("configMap"),
    "downwardAPI": _projected_downward,
    "serviceAccountToken": _projected_token,
    "clusterTrustBundle": _projected_bundle,
}


def _csi_driver(source: Object, path: str) -> list[FieldError]:
    driver = source.get("driver") or ""
    if not driver:
        return [required(f"{path}.driver")]
    errors = [too_long(f"{path}.driver", driver, 63)] if len(driver) > 63 else []
    return errors + [invalid(f"{path}.driver", driver, text) for text in names.dns_subdomain(driver.lower())]


def _csi_volume(source: Object, path: str) -> list[FieldError]:
    errors = _csi_driver(source, path)
    return errors if source.get("volumeHandle") else [*errors, required(f"{path}.volumeHandle")]


def _ephemeral(source: Object, path: str) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    allowed = ("annotations", "labels", "creationTimestamp")
    metadata = template.get("metadata") or {}
    where = f"{path}.volumeClaimTemplate.metadata"
    errors = [forbidden(f"{where}.{key}", "cannot be set") for key in metadata if key not in allowed]
    return errors + claim_spec_errors(template.get("spec") or {}, f"{path}.volumeClaimTemplate.spec")


def _image(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("reference") else [required(f"{path}.reference")]
    policy = source.get("pullPolicy") or ""
    if policy not in PULL_POLICIES:
        wrong = not_supported(f"{path}.pullPolicy", policy, PULL_POLICIES)
        errors.append(wrong if policy else required(f"{path}.pullPolicy"))
    return errors


# In the order Kubernetes looks at them: the first one counts, further ones are refused. Sources that no embedded node
# can mount are checked for what they cannot do without.
_NETWORK: dict[str, Check] = {
    "gcePersistentDisk": _needs("pdName"),
    "awsElasticBlockStore": _needs("volumeID"),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _needs(),
    "rbd": _needs("monitors", "image"),
    "quobyte": _needs("registry", "volume"),
    "cephfs": _needs("monitors"),
    "iscsi": _needs("targetPortal", "iqn"),
    "cinder": _needs("volumeID"),
    "fc": _needs(),
    "flexVolume": _needs("driver"),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _needs("diskName", "diskURI"),
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "storageos": _needs(),
}
POD_SOURCES: dict[str, Check] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git,
    "secret": _secret,
    "nfs": _nfs,
    "persistentVolumeClaim": _needs("claimName"),
    "downwardAPI": _downward,
    "configMap": _config_map,
    "projected": _projected,
    **_NETWORK,
    "csi": _csi_driver,
    "ephemeral": _ephemeral,
    "image": _image,
}
_PERSISTENT: dict[str, Check] = {
    "hostPath": _host_path,
    "nfs": _nfs,
    "local": _local,
    "csi": _csi_volume,
    **_NETWORK,
}
PERSISTENT_SOURCES = tuple(_PERSISTENT)
