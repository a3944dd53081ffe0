;; SPDX-License-Identifier: GPL-3.0-or-later
;; Users who install from this repository need none of these compiled;
;; `make lint' compiles them all the same.
;; Flymake compiles a file of a folder of lisp/ with the others.
(("lisp/" . ((emacs-lisp-mode
              . ((elisp-flymake-byte-compile-load-path
                  . ("./" "../.." "../addon-check" "../addon-prompts"
                     "../addon-remote" "../addon-tools" "../base" "../changes" "../clients"
                     "../edits" "../pages" "../review" "../server" "../share"
                     "../terminal" "../text"))))))
 ("bench/" . ((emacs-lisp-mode . ((no-byte-compile . t)))))
 ("dev/" . ((emacs-lisp-mode . ((no-byte-compile . t)))))
 ("test/" . ((emacs-lisp-mode . ((no-byte-compile . t))))))
