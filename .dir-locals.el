;; SPDX-License-Identifier: GPL-3.0-or-later
;; Users who install from this repository need none of these compiled;
;; `make lint' compiles them all the same.
(("bench/" . ((emacs-lisp-mode . ((no-byte-compile . t)))))
 ("dev/" . ((emacs-lisp-mode . ((no-byte-compile . t)))))
 ("test/" . ((emacs-lisp-mode . ((no-byte-compile . t))))))
