"""`danlu images`: what stands behind image names on this machine."""

from danlu.cli.commands import Entry
from danlu.cli.language import Text

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
    "share": Entry(
        "danlu.cli.local.images.share",
        Text(
            "put an environment where every account of this machine finds it",
            "把一个环境放到本机所有账户都能找到的地方",
        ),
    ),
    "remove": Entry(
        "danlu.cli.local.images.remove",
        Text("remove an image of your own from images.yaml", "从 images.yaml 中删除您自己的一个镜像"),
    ),
}
DEFAULT = "list"
