# SPDX-License-Identifier: GPL-3.0-or-later
# `make run' tries the package, `make test' tests it; both install what is missing.

.PHONY: help run test setup lint ert pytest e2e fuzz soak errors bench package clean

help:
	@echo 'make run      Emacs with the mode on, and Gemini CLI beside it'
	@echo 'make test     lint, ert, pytest and e2e'
	@echo 'make setup    install what the tests need'
	@echo 'make lint     compile and lint the Lisp; ruff, mypy and pyright'
	@echo 'make ert      tests of the Lisp: all on one Emacs, on others what differs'
	@echo 'make pytest   tests of the Python server'
	@echo 'make e2e      real Emacs, real server, real Gemini CLI'
	@echo 'make fuzz     100,000 random inputs over HTTP and EPC'
	@echo 'make soak     10,000 reviews while all breaks, 600 by random keys; 10,000 files'
	@echo 'make errors   compare the errors reported after edits with those of the checkers'
	@echo 'make bench    compare speed and memory with other programs'
	@echo 'make package  dist/gemini-companion-VERSION.tar'
	@echo 'make clean    remove all that the other commands made'

run:
	@dev/run

test:
	@dev/test lint ert pytest e2e

setup:
	@dev/setup test

lint ert pytest e2e:
	@dev/test $@

fuzz:
	@GC_FUZZ=$${GC_FUZZ:-100000} dev/test $@

soak:
	@dev/setup test
	@GC_RECORD_SEQUENCES=$${GC_RECORD_SEQUENCES:-10000} dev/test ert -- \
		gemini-companion-record-is-right-in-sequences-of-everyday-use \
		gemini-companion-record-is-mostly-right-in-sequences-made-for-harm
	@GC_TIMES=$${GC_TIMES:-100} GC_COMMENTS=$${GC_COMMENTS:-2000} dev/test ert -- \
		gemini-companion-comment-send-is-once-with-its-line-or-none \
		gemini-companion-hunk-compares-as-diff-does \
		gemini-companion-hunk-what-is-shown-is-what-is-sent \
		gemini-companion-privacy-ignores-what-git-would \
		gemini-companion-text-differs-where-its-characters-do \
		gemini-companion-text-is-merged-to-the-character \
		gemini-companion-text-is-replaced-to-the-character \
		gemini-companion-text-is-replaced-where-it-differs
	@GC_KILLS=$${GC_KILLS:-100} GC_SAVED_SEQUENCES=$${GC_SAVED_SEQUENCES:-300} \
		dev/test ert -- gemini-companion-saved-changes-survive-kills-at-random-moments \
		gemini-companion-saved-marks-are-the-same-after-random-work
	@GC_SNAPSHOT_SEQUENCES=$${GC_SNAPSHOT_SEQUENCES:-3000} GC_SNAPSHOT_SEED=$$GC_SOAK_SEED \
		dev/test pytest -- test/python/test_snapshots_random.py
	@GC_SHELL_TURNS=$${GC_SHELL_TURNS:-2000} GC_SHELL_SEED=$$GC_SOAK_SEED \
		dev/test e2e -- test/e2e/test_shell_random.py
	@GC_KEYS=$${GC_KEYS:-10000} GC_KEYS_SEED=$$GC_SOAK_SEED \
		dev/test e2e -- test/e2e/test_random_keys.py
	@.venv/bin/python test/soak

errors:
	@dev/setup test
	@.venv/bin/python test/errors

bench:
	@dev/setup test
	@.venv/bin/python bench

package:
	@dev/package

clean:
	rm -rf .deps .eask .run .venv dist .hypothesis
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find . -path ./.git -prune -o -name __pycache__ -prune -exec rm -rf {} +
