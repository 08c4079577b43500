"""Building an image from a Dockerfile: without a daemon, without root, step by step onto the layers so far.

instructions   the text of a Dockerfile, read as instructions with their lines
expansion      $VARIABLES and quotes in them
ignorefile     .dockerignore
trees          what COPY takes from: the context, another stage, an image; links never lead out of it
layertar       a layer's tar, the same bits for the same content
copystep       COPY and ADD; downloads are refused
runstep        RUN, in the sandbox of containers, on an overlay; `steprunner` is its process
buildcache     what a step has made, by all that it was made from
baseimages     what FROM begins with: an image, an environment of this machine, nothing
stagebuild     one stage; imagebuilder: all of them, and the image at the end
"""
