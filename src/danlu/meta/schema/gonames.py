"""Go's names for types that JSON has no name for: `v1.PullPolicy` is a string. Decoding errors show them.

Only fields that people write; everything else is named after its JSON type.
"""

from __future__ import annotations

_TABLE = """
[]types.UID: UncountedTerminatedPods.failed UncountedTerminatedPods.succeeded
[]v1.Capability: Capabilities.add Capabilities.drop
[]v1.FinalizerName: NamespaceSpec.finalizers
[]v1.IPFamily: ServiceSpec.ipFamilies
[]v1.PersistentVolumeAccessMode: PersistentVolumeClaimSpec.accessModes PersistentVolumeSpec.accessModes
[]v1.ResourceQuotaScope: ResourceQuotaSpec.scopes
map[string]v1.ExtraValue: SubjectAccessReviewSpec.extra UserInfo.extra
types.UID: BoundObjectReference.uid ConfigMapNodeConfigSource.uid ObjectMeta.uid ObjectReference.uid
types.UID: OwnerReference.uid Preconditions.uid StatusDetails.uid
v1.AddressType: EndpointSlice.addressType
v1.AppArmorProfileType: AppArmorProfile.type
v1.CompletionMode: JobSpec.completionMode
v1.ConditionStatus: PodFailurePolicyOnPodConditionsPattern.status
v1.ContainerRestartPolicy: Container.restartPolicy
v1.ContainerRestartRuleAction: ContainerRestartRule.action
v1.ContainerRestartRuleOnExitCodesOperator: ContainerRestartRuleOnExitCodes.operator
v1.CoordinatedLeaseStrategy: LeaseSpec.strategy
v1.DNSPolicy: PodSpec.dnsPolicy
v1.DaemonSetUpdateStrategyType: DaemonSetUpdateStrategy.type
v1.DeletionPropagation: DeleteOptions.propagationPolicy
v1.DeploymentStrategyType: DeploymentStrategy.type
v1.FieldSelectorOperator: FieldSelectorRequirement.operator
v1.HostPathType: HostPathVolumeSource.type
v1.IPFamilyPolicy: ServiceSpec.ipFamilyPolicy
v1.LabelSelectorOperator: LabelSelectorRequirement.operator
v1.LimitType: LimitRangeItem.type
v1.LoadBalancerIPMode: LoadBalancerIngress.ipMode
v1.ManagedFieldsOperationType: ManagedFieldsEntry.operation
v1.MountPropagationMode: VolumeMount.mountPropagation
v1.NodeAddressType: NodeAddress.type
v1.NodeInclusionPolicy: TopologySpreadConstraint.nodeAffinityPolicy TopologySpreadConstraint.nodeTaintsPolicy
v1.NodeSelectorOperator: NodeSelectorRequirement.operator
v1.OSName: PodOS.name
v1.PersistentVolumeClaimRetentionPolicyType: StatefulSetPersistentVolumeClaimRetentionPolicy.whenDeleted
v1.PersistentVolumeClaimRetentionPolicyType: StatefulSetPersistentVolumeClaimRetentionPolicy.whenScaled
v1.PersistentVolumeMode: PersistentVolumeClaimSpec.volumeMode PersistentVolumeSpec.volumeMode
v1.PersistentVolumeReclaimPolicy: PersistentVolumeSpec.persistentVolumeReclaimPolicy StorageClass.reclaimPolicy
v1.PodConditionType: PodFailurePolicyOnPodConditionsPattern.type PodReadinessGate.conditionType
v1.PodFSGroupChangePolicy: PodSecurityContext.fsGroupChangePolicy
v1.PodFailurePolicyAction: PodFailurePolicyRule.action
v1.PodFailurePolicyOnExitCodesOperator: PodFailurePolicyOnExitCodesRequirement.operator
v1.PodManagementPolicyType: StatefulSetSpec.podManagementPolicy
v1.PodReplacementPolicy: JobSpec.podReplacementPolicy
v1.PodSELinuxChangePolicy: PodSecurityContext.seLinuxChangePolicy
v1.PreemptionPolicy: PodSpec.preemptionPolicy PriorityClass.preemptionPolicy
v1.ProcMountType: SecurityContext.procMount
v1.Protocol: ContainerPort.protocol EndpointPort.protocol ServicePort.protocol
v1.PullPolicy: Container.imagePullPolicy ImageVolumeSource.pullPolicy
v1.RecursiveReadOnlyMode: VolumeMount.recursiveReadOnly
v1.ResourceHealthStatus: ResourceHealth.health
v1.ResourceID: ResourceHealth.resourceID
v1.ResourceList: LimitRangeItem.default LimitRangeItem.defaultRequest LimitRangeItem.max
v1.ResourceList: LimitRangeItem.maxLimitRequestRatio LimitRangeItem.min PersistentVolumeSpec.capacity
v1.ResourceList: PodSpec.overhead ResourceQuotaSpec.hard ResourceRequirements.limits ResourceRequirements.requests
v1.ResourceList: VolumeResourceRequirements.limits VolumeResourceRequirements.requests
v1.ResourceName: ContainerResizePolicy.resourceName
v1.ResourceQuotaScope: ScopedResourceSelectorRequirement.scopeName
v1.ResourceResizeRestartPolicy: ContainerResizePolicy.restartPolicy
v1.RestartPolicy: PodSpec.restartPolicy
v1.ScopeSelectorOperator: ScopedResourceSelectorRequirement.operator
v1.SeccompProfileType: SeccompProfile.type
v1.SecretType: Secret.type
v1.ServiceAffinity: ServiceSpec.sessionAffinity
v1.ServiceExternalTrafficPolicy: ServiceSpec.externalTrafficPolicy
v1.ServiceInternalTrafficPolicy: ServiceSpec.internalTrafficPolicy
v1.ServiceType: ServiceSpec.type
v1.Signal: Lifecycle.stopSignal
v1.StatefulSetUpdateStrategyType: StatefulSetUpdateStrategy.type
v1.StorageMedium: EmptyDirVolumeSource.medium
v1.SupplementalGroupsPolicy: PodSecurityContext.supplementalGroupsPolicy
v1.TaintEffect: Taint.effect Toleration.effect
v1.TerminationMessagePolicy: Container.terminationMessagePolicy
v1.TolerationOperator: Toleration.operator
v1.URIScheme: HTTPGetAction.scheme
v1.UniqueVolumeName: AttachedVolume.name
v1.UnsatisfiableConstraintAction: TopologySpreadConstraint.whenUnsatisfiable
v1.VolumeBindingMode: StorageClass.volumeBindingMode
"""

# "Container.imagePullPolicy" -> "v1.PullPolicy"
GO_NAMES: dict[str, str] = {
    field: name
    for name, fields in (line.split(": ") for line in _TABLE.split("\n") if line)
    for field in fields.split()
}

# Go structs that take in another struct: errors name it on the way to a field. (struct taken in, its fields);
# no fields given: all but those in _OWN.
_TAKEN_IN: dict[str, tuple[str, frozenset[str]]] = {
    "Volume": ("VolumeSource", frozenset()),
    "PersistentVolumeSpec": ("PersistentVolumeSource", frozenset()),
    "EphemeralContainer": ("EphemeralContainerCommon", frozenset()),
    "Probe": ("ProbeHandler", frozenset({"exec", "httpGet", "tcpSocket", "grpc"})),
    **dict.fromkeys(
        (
            "SecretProjection",
            "ConfigMapVolumeSource",
            "ConfigMapProjection",
            "ConfigMapKeySelector",
            "SecretKeySelector",
            "ConfigMapEnvSource",
            "SecretEnvSource",
        ),
        ("LocalObjectReference", frozenset({"name"})),
    ),
}
_OWN = frozenset(
    {"name", "targetContainerName", "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy"}
    | {"storageClassName", "mountOptions", "volumeMode", "nodeAffinity", "volumeAttributesClassName"}
)


def taken_in(struct: str, field: str) -> str | None:
    """The embedded struct through which Go reaches a field, if there is one."""
    if field in ("kind", "apiVersion") and not struct.endswith(("Reference", "Ref", "Source")):
        return "TypeMeta"
    found = _TAKEN_IN.get(struct)
    if found is None:
        return None
    name, fields = found
    return name if (field in fields if fields else field not in _OWN) else None
