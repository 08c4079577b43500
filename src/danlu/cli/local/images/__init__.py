"""`danlu images`: what stands behind image names on this machine."""

from danlu.cli.commands import Entry
from danlu.cli.language import Text

REMOVES = Text(
    "remove an image, or one of your own entries from images.yaml", "删除一个镜像，或 images.yaml 中您自己的一个条目"
)

COMMANDS = {
    "list": Entry(
        "danlu.cli.local.images.list",
        Text("list environments and the images that they stand for", "列出环境及其代表的镜像"),
    ),
    "build": Entry(
        "danlu.cli.local.images.build",
        Text(
            "make an environment of the catalogue, or with -t an image from a Dockerfile",
            "构建目录中的一个环境；加 -t 则由 Dockerfile 制作镜像",
        ),
    ),
    "load": Entry(
        "danlu.cli.local.images.load",
        Text(
            "take images from an archive (docker save, OCI layout) or the standard input",
            "从归档（docker save、OCI layout）或标准输入载入镜像",
        ),
    ),
    "pull": Entry("danlu.cli.local.images.pull", Text("fetch images from their registries", "从镜像仓库拉取镜像")),
    "push": Entry("danlu.cli.local.images.push", Text("send an image to a registry", "把镜像推送到镜像仓库")),
    "save": Entry(
        "danlu.cli.local.images.save",
        Text("write images into an archive that every engine reads", "把镜像写成各种引擎都能读取的归档"),
    ),
    "inspect": Entry("danlu.cli.local.images.inspect", Text("show what an image says of itself", "显示镜像自身的信息")),
    "share": Entry(
        "danlu.cli.local.images.share",
        Text(
            "put an environment where every account of this machine finds it",
            "把一个环境放到本机所有账户都能找到的地方",
        ),
    ),
    "rm": Entry("danlu.cli.local.images.remove", REMOVES),
    "remove": Entry("danlu.cli.local.images.remove", REMOVES),
}
DEFAULT = "list"
