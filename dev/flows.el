;;; flows.el --- Count the calls of the package in a flow  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loads the sources of the package, all of them, so that each function and each
;; method counts its calls.  Accessors of structs, macros and closures are not counted.

;;; Code:

(require 'bench)
(require 'cl-lib)
(require 'seq)

(declare-function gemini-companion-server-receive "gemini-companion-server")

(defconst flows--root
  (expand-file-name ".." (file-name-directory (or load-file-name buffer-file-name)))
  "The directory of the repository.")

(defvar flows--on nil
  "Non-nil while calls are counted.")

(defvar flows--calls (make-hash-table :test #'equal)
  "Number of calls of each function, a list (FILE NAME PARAMETERS).")

(defun flows--count (function)
  "Count a call of FUNCTION, a list as in `flows--calls'."
  (when flows--on
    (cl-incf (gethash function flows--calls 0))))

(defun flows--counted-method (arguments)
  "Return ARGUMENTS of `cl-generic-define-method' for a method that is counted."
  (pcase-let* ((`(,name ,qualifiers ,parameters ,kind ,function) arguments)
               (key (list load-file-name name parameters))
               (counted (lambda (function)
                          (lambda (&rest values)
                            (flows--count key)
                            (apply function values)))))
    (list name qualifiers parameters kind
          (if (eq kind 'curried)
              (lambda (next) (funcall counted (funcall function next)))
            (funcall counted function)))))

(defun flows-load ()
  "Load all files of the package so that their functions are counted."
  (push flows--root load-path)
  (advice-add 'cl-generic-define-method :filter-args #'flows--counted-method)
  (require 'gemini-companion)
  (let ((files (file-expand-wildcards
                (expand-file-name "lisp/*/gemini-companion-*.el" flows--root))))
    (dolist (file files)
      (require (intern (file-name-base file))))
    (advice-remove 'cl-generic-define-method #'flows--counted-method)
    (dolist (file (cons (locate-library "gemini-companion") files))
      (pcase-dolist (`(,kind . ,name) (seq-filter #'consp
                                                  (cdr (assoc file load-history))))
        (when (and (eq kind 'defun)
                   (not (macrop name))
                   (not (cl--generic name))
                   ;; Accessors are.
                   (not (function-get name 'side-effect-free)))
          (let ((key (list file name)))
            (advice-add name :before (lambda (&rest _) (flows--count key))))))))
  ;; As if CLIs were linked.
  (advice-add 'gemini-companion-install-extension-p :override #'always))

(defun flows-begin ()
  "Start to count."
  (clrhash flows--calls)
  (setq flows--on t))

(defun flows-end ()
  "Return three numbers since `flows-begin': files entered, each call, functions."
  (setq flows--on nil)
  (list (length (seq-uniq (mapcar #'car (hash-table-keys flows--calls))))
        (apply #'+ (hash-table-values flows--calls))
        (hash-table-count flows--calls)))

(defun flows-ask (kind facts &rest texts)
  "Let a hook of a linked CLI ask a question of KIND with FACTS and TEXTS."
  (funcall (apply #'gemini-companion-server-receive 'ask kind facts texts) #'ignore))

(defun flows-shown-p (text)
  "Return non-nil if a window displays a buffer with TEXT."
  (seq-some (lambda (window)
              (with-current-buffer (window-buffer window)
                (and (string-search text (buffer-string)) t)))
            (window-list nil 'no-minibuffer)))

(defun flows-marked-p ()
  "Return non-nil if the selected buffer has a mark of a change."
  (with-current-buffer (window-buffer)
    (seq-some (lambda (overlay) (overlay-get overlay 'gemini-companion-mark))
              (overlays-in (point-min) (1+ (point-max))))))

(provide 'flows)
;;; flows.el ends here
