module danlu/benchmarks/kubelet

go 1.26

require k8s.io/cri-client v0.36.3
