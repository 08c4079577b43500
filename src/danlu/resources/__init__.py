"""What people do with the objects of any Kubernetes, through its API and with the rights that they have: `kubectl` as a
library, without the words. Nothing here prints or asks; `danlu.cli` speaks, and a program may call the same.

    kindfinder   what a server serves: `po`, `pytorchjob`, `deployments.apps`, `all` → Kind
    printedtable objects as the server itself puts them into columns, listed and watched
    dossier      one object with what belongs to it: its pods, events, and why it waits
    manifestfiles  YAML and JSON of files, folders and standard input
    applying     server-side apply, and deletion that can be waited for
    loglines     the logs of all pods of an object, as one stream of lines
"""
