# Thin: every target calls a script, which CI and people call too.
.PHONY: help setup train test unit check bench

help:
	@echo 'make train   set up everything and train a small model with four workers'
	@echo 'make test    all tests            make check   formatting, types, layers'
	@echo 'make unit    unit tests, a minute'
	@echo 'make bench   speed, side by side with a real kube-apiserver and etcd'

setup:
	@scripts/setup

train:
	@scripts/train

test:
	@scripts/test

unit:
	@scripts/test --unit

check:
	@scripts/check

bench:
	@scripts/bench
