"""All commands, in the order and the sections in which `danlu --help` lists them. Nothing is imported before it is
chosen: `danlu status` does not wait for what only `danlu up` needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from danlu.cli.language import Text


class Entry(NamedTuple):
    """One line of a table of commands."""

    module: str
    about: Text


class Section(NamedTuple):
    title: Text
    commands: Mapping[str, Entry]


LOCAL = {
    "up": Entry(
        "danlu.cli.local.up",
        Text("start a Kubernetes in one process on this machine", "在本机以一个进程启动 Kubernetes"),
    ),
    "down": Entry(
        "danlu.cli.local.down",
        Text(
            "stop it and the pods it runs; objects and volumes stay",
            "停止它和它运行的 Pod；对象和存储卷保留",
        ),
    ),
    "status": Entry(
        "danlu.cli.local.status",
        Text(
            "say whether it runs, where, and how pods are run here",
            "说明它是否在运行、在哪里，以及本机如何运行 Pod",
        ),
    ),
    "kubeconfig": Entry(
        "danlu.cli.local.kubeconfig",
        Text(
            "print the path of its kubeconfig, or merge it into your own",
            "打印其 kubeconfig 的路径，或并入您自己的文件",
        ),
    ),
    "images": Entry(
        "danlu.cli.local.images",
        Text(
            "list, pull, load, build and push images, and environments for them",
            "列出、拉取、载入、构建和推送镜像及其环境",
        ),
    ),
    "data": Entry(
        "danlu.cli.local.data",
        Text("fetch the data sets of the examples", "获取示例使用的数据集"),
    ),
}
OBJECTS = {
    "get": Entry(
        "danlu.cli.objects.get",
        Text("list objects of any kind, or print them as YAML or JSON", "列出任意类型的对象，或以 YAML、JSON 输出"),
    ),
    "describe": Entry(
        "danlu.cli.objects.describe",
        Text("tell all about an object: state, why, pods, events", "详细说明一个对象：状态、原因、Pod、事件"),
    ),
    "logs": Entry(
        "danlu.cli.objects.logs",
        Text("print the log of a pod, or of all replicas of a job", "输出 Pod 的日志，或作业全部副本的日志"),
    ),
    "events": Entry("danlu.cli.objects.events", Text("list what happened to objects", "列出对象上发生的事件")),
    "apply": Entry(
        "danlu.cli.objects.apply",
        Text("make what manifests describe, or bring it up to date", "按清单创建对象，或更新已有的对象"),
    ),
    "exec": Entry(
        "danlu.cli.objects.exec",
        Text("run a program, or a shell, in a pod", "在 Pod 中运行程序或 shell"),
    ),
    "cp": Entry(
        "danlu.cli.objects.cp",
        Text("copy files into a pod, or out of it", "把文件复制进 Pod，或从中取出"),
    ),
    "port-forward": Entry(
        "danlu.cli.objects.portforward",
        Text("make a port of a pod or service one of this machine", "把 Pod 或服务的端口接到本机"),
    ),
    "top": Entry(
        "danlu.cli.objects.top",
        Text("show what pods or nodes use of processors and memory", "显示 Pod 或节点占用的 CPU 和内存"),
    ),
    "delete": Entry("danlu.cli.objects.delete", Text("delete objects by name or manifest", "按名称或清单删除对象")),
}
WORK = {
    "why": Entry(
        "danlu.cli.work.why",
        Text(
            "say what keeps a job, notebook, pod or volume, and what mends it",
            "说明作业、Notebook、Pod 或持久卷为什么没有运行，以及怎样解决",
        ),
    ),
}
CLUSTER = {
    "install": Entry(
        "danlu.cli.cluster.install",
        Text(
            "put Danlu on a Kubernetes cluster, or bring it up to date there",
            "把丹炉安装到 Kubernetes 集群，或更新已有的安装",
        ),
    ),
    "uninstall": Entry(
        "danlu.cli.cluster.uninstall",
        Text("take Danlu from a cluster; what users made is kept", "从集群卸载丹炉；保留用户的数据"),
    ),
    "console": Entry(
        "danlu.cli.cluster.console",
        Text("serve the web console of a Kubernetes cluster", "为 Kubernetes 集群提供网页控制台"),
    ),
    "operator": Entry(
        "danlu.cli.cluster.operator",
        Text("look after Danlu's kinds on a Kubernetes cluster", "在 Kubernetes 集群上管理丹炉的类型"),
    ),
}
MAINTENANCE = {
    "backup": Entry(
        "danlu.cli.maintenance.backup",
        Text(
            "write everything that is stored to one file, while it runs or not",
            "把存储的全部对象写入一个文件，运行中也可以",
        ),
    ),
    "restore": Entry(
        "danlu.cli.maintenance.restore",
        Text("put a backup back in place", "恢复一份备份"),
    ),
    "repair": Entry(
        "danlu.cli.maintenance.repair",
        Text("show what was found damaged, and mend it", "列出发现的损坏，并加以修复"),
    ),
    "encryption": Entry(
        "danlu.cli.maintenance.encryption",
        Text(
            "tell of the key that secrets are encrypted with, or change it",
            "说明加密 Secret 所用的密钥，或更换它",
        ),
    ),
    "completion": Entry(
        "danlu.cli.shellcompletion",
        Text(
            "print what makes a shell complete commands and names of objects", "输出 shell 补全脚本：补全命令与对象名称"
        ),
    ),
    "version": Entry("danlu.cli.maintenance.version", Text("print the version", "打印版本")),
}
SECTIONS = (
    Section(Text("This machine", "本机"), LOCAL),
    Section(Text("Work", "工作"), {**WORK, **OBJECTS}),
    Section(Text("Clusters", "集群"), CLUSTER),
    Section(Text("Maintenance", "维护"), MAINTENANCE),
)
COMMANDS: Mapping[str, Entry] = {name: entry for section in SECTIONS for name, entry in section.commands.items()}
