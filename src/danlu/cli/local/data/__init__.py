"""`danlu data`: the data sets of the examples."""

from danlu.cli.commands import Entry
from danlu.cli.language import Text

COMMANDS = {
    "list": Entry("danlu.cli.local.data.list", Text("list the data sets", "列出数据集")),
    "get": Entry(
        "danlu.cli.local.data.get",
        Text(
            "fetch one to where torchvision and Keras look for it",
            "获取一个数据集，放到 torchvision 和 Keras 会找的地方",
        ),
    ),
}
DEFAULT = "list"
