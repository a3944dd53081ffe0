;;; flows.el --- What a flow of the package enters  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loads the sources of the package, all of them, so that each function and each
;; method counts its calls.  Accessors of structs, macros and closures are not counted.
;;
;; Whether a function sets or writes something is read from its definition: it has one of
;; the forms in `flows--writers', with a variable of the package or a place.  So the path
;; is about right, and as long as the same rule is used, comparable.

;;; Code:

(require 'bench)
(require 'cl-lib)
(require 'seq)
(require 'subr-x)

(declare-function gemini-companion-server-receive "gemini-companion-server")

(defconst flows--root
  (expand-file-name ".." (file-name-directory (or load-file-name buffer-file-name)))
  "The directory of the repository.")

(defvar flows--on nil
  "Non-nil while calls are counted.")

(defvar flows--calls (make-hash-table :test #'equal)
  "Number of calls of each function, a list (FILE NAME PARAMETERS).")

(defvar flows--asked (make-hash-table :test #'equal)
  "The last call of each function, (COUNT BUFFER POINT . ARGUMENTS).
COUNT is that of `flows--sets'.")

(defvar flows--again (make-hash-table :test #'equal)
  "Number of calls of each function with equal arguments, and nothing set between.")

(defvar flows--upward (make-hash-table :test #'equal)
  "Calls into a later wing, (CALLER . FUNCTION).")

(defvar flows--sets 0
  "Number of calls of functions that set or write something.")

(defvar flows--caller nil
  "The file of the function of the package that runs, or nil.")

(defvar flows--setters (make-hash-table :test #'equal)
  "Table of the functions that set or write something, (FILE . NAME).")

(defvar flows--wings nil
  "The wings, names of folders, in their order.")

(defconst flows--places
  '( setq setf push pop cl-pushnew cl-incf cl-decf cl-callf cl-callf2 setq-default
     setq-local add-to-list)
  "Forms that set a variable or a place.")

(defconst flows--writers
  '( puthash remhash clrhash insert erase-buffer delete-region replace-match
     replace-buffer-contents write-region rename-file delete-file make-directory
     process-send-string process-send-eof process-put make-process delete-process
     make-overlay move-overlay overlay-put delete-overlay put-text-property
     set-window-buffer set-window-start set-window-point select-window pop-to-buffer
     display-buffer kill-buffer run-at-time run-with-idle-timer cancel-timer add-hook
     remove-hook set-buffer-modified-p restore-buffer-modified-p message)
  "Functions that set or write something.")

(defun flows--sets-p (form)
  "Return non-nil if a variable or a place is set by FORM, or something written."
  (cond ((not (consp form)) nil)
        ((memq (car form) flows--writers))
        ((and (memq (car form) flows--places)
              (seq-some (lambda (place)
                          (or (consp place)
                              (and (symbolp place)
                                   (string-prefix-p "gemini-companion-"
                                                    (symbol-name place)))))
                        (if (memq (car form) '(push cl-pushnew cl-callf cl-callf2))
                            (seq-take (cddr form) 1)
                          (seq-take (cdr form) 1)))))
        (t (while (and (consp form) (not (flows--sets-p (car form))))
             (setq form (cdr form)))
           (consp form))))

(defun flows--read (file)
  "Record which functions of FILE set or write something."
  (with-temp-buffer
    (insert-file-contents file)
    (let ((form nil))
      (while (setq form (ignore-error end-of-file (read (current-buffer))))
        (when (and (memq (car-safe form) '(defun cl-defun cl-defmethod defsubst))
                   (flows--sets-p (cddr form)))
          (puthash (cons file (nth 1 form)) t flows--setters))))))

(defun flows--wing (file)
  "Return the number of the wing of FILE, or nil for the main file."
  (seq-position flows--wings
                (file-name-nondirectory
                 (directory-file-name (file-name-directory file)))))

(defun flows--count (function arguments)
  "Count a call of FUNCTION, a list as in `flows--calls', with ARGUMENTS."
  (when flows--on
    (cl-incf (gethash function flows--calls 0))
    (pcase-let* ((`(,file ,name) (seq-take function 2))
                 (call (append (list flows--sets (current-buffer) (point)) arguments))
                 (last (gethash function flows--asked))
                 (here (flows--wing file))
                 (there (and flows--caller (flows--wing flows--caller))))
      (when (and here there (< there here))
        (puthash (cons flows--caller name) t flows--upward))
      (if (gethash (cons file name) flows--setters)
          (cl-incf flows--sets)
        (when (and (length= last (length call))
                   ;; What is drawn may have cycles.
                   (cl-every (lambda (one other)
                               (or (eql one other)
                                   (and (stringp one) (equal one other))))
                             last call))
          (cl-incf (gethash function flows--again 0)))
        (puthash function call flows--asked)))))

(defun flows--counted-method (arguments)
  "Return ARGUMENTS of `cl-generic-define-method' for a method that is counted."
  (pcase-let* ((`(,name ,qualifiers ,parameters ,kind ,function) arguments)
               (key (list load-file-name name parameters))
               (counted (lambda (function)
                          (lambda (&rest values)
                            (flows--count key values)
                            (let ((flows--caller (car key)))
                              (apply function values))))))
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
    (with-temp-buffer
      (insert-file-contents (expand-file-name "doc/design.org" flows--root))
      (re-search-forward "^\\* The wings of the Lisp$")
      (while (re-search-forward "^\\*\\*? \\([a-z-]+\\)$" nil t)
        (push (match-string 1) flows--wings))
      (setq flows--wings (nreverse flows--wings)))
    (dolist (file files)
      (flows--read file)
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
            (advice-add name :around
                        (lambda (function &rest values)
                          (flows--count key values)
                          (let ((flows--caller file))
                            (apply function values)))))))))
  ;; As if CLIs were linked.
  (advice-add 'gemini-companion-install-extension-p :override #'always))

(defun flows-begin ()
  "Start to count."
  (mapc #'clrhash (list flows--calls flows--asked flows--again flows--upward))
  (setq flows--on t))

(defun flows-end ()
  "Return what was entered since `flows-begin'.
The value is a list of the number of files on the path, in which something is
set or written; of all files; of functions that were asked again; of calls into
a later wing; and of lists of the names of these three but for all files."
  (setq flows--on nil)
  (cl-flet ((short (file) (string-remove-prefix "gemini-companion-"
                                                (file-name-base file))))
    (let* ((called (hash-table-keys flows--calls))
           (path (seq-uniq
                  (cl-loop for (file name) in called
                           when (gethash (cons file name) flows--setters)
                           collect (short file))))
           (again (cl-loop for function being the hash-keys of flows--again
                           using (hash-values count)
                           collect (format "%s %d" (nth 1 function) count)))
           (upward (mapcar (pcase-lambda (`(,caller . ,name))
                             (format "%s: %s" (short caller) name))
                           (hash-table-keys flows--upward))))
      (list (length path)
            (length (seq-uniq (mapcar #'car called)))
            (length again)
            (length upward)
            (sort path #'string<)
            (sort again #'string<)
            (sort upward #'string<)))))

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
