;;; gemini-companion-lookup.el --- Questions of a model about code  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Answer questions of a model about a symbol, or about the diagnostics of a file.  The
;; answers come from the language servers of Eglot, from Flymake and Flycheck, and for
;; Lisp from this Emacs.  No file is visited, and Emacs does not wait for a server.
;; Long searches are done in slices.

;;; Code:

(require 'gemini-companion-code)
(require 'gemini-companion-context)
(require 'gemini-companion-eglot)
(require 'gemini-companion-errors)
(require 'gemini-companion-names)
(require 'gemini-companion-privacy)
(require 'gemini-companion-slices)
(require 'gemini-companion-text)
(require 'gemini-companion-words)

;;;; Questions

(cl-defgeneric gemini-companion-lookup (kind answer file &rest details)
  "Answer a question of KIND about FILE: call ANSWER, maybe later.
KIND is `references', `definition' or `diagnostics'.  The argument of
ANSWER is a plist, with `:problem' if there is no answer; for it and
DETAILS, see the method for KIND.")

(defmacro gemini-companion-lookup-guarded (answer &rest body)
  "Evaluate BODY without messages, and report an error to ANSWER.
After an error, call ANSWER with the `:problem'.  Preserve the match data, as
timers and filters must."
  (declare (indent 1) (debug t))
  (let ((problem (make-symbol "problem")))
    `(condition-case-unless-debug ,problem
         (save-match-data
           (let ((inhibit-message t)
                 (message-log-max nil))
             ,@body))
       (user-error (funcall ,answer (list :problem (cadr ,problem))))
       ;; The message of another error may contain text of a file.
       (error
        (funcall ,answer (list :problem (format "Emacs failed: %s"
                                                (car ,problem))))))))

(defun gemini-companion-lookup-map-in-slices (function list done)
  "Call FUNCTION with each element of LIST, then DONE with the appended values.
Emacs handles keys in between.  Errors of both are ignored."
  (let ((values nil))
    (gemini-companion-slices-later
     list
     (lambda (element)
       (gemini-companion-lookup-guarded #'ignore
         (push (ignore-errors (funcall function element)) values)))
     (lambda ()
       (gemini-companion-lookup-guarded #'ignore
         (funcall done (apply #'append (nreverse values))))))))

;;;; Files

(defun gemini-companion-lookup-true-name (file)
  "Return the true name of FILE, a file that may be shared.
Signal an error if FILE does not exist or may not be shared."
  (let ((name (gemini-companion-text-true-name file)))
    (unless (and name (gemini-companion-context-name-shared-p file))
      (user-error "%s is not shared by Emacs" file))
    (unless (file-regular-p name)
      (user-error "No such file: %s" file))
    name))

(defun gemini-companion-lookup--insert (file)
  "Insert the text of FILE, a true name; return nil if it is too large."
  (let ((buffer (gemini-companion-names-buffer file)))
    (when (<= (if buffer
                  (buffer-size buffer)
                (file-attribute-size (file-attributes file)))
              (* 1024 1024))
      (insert (if buffer
                  (gemini-companion-text-of-buffer buffer)
                (gemini-companion-text-read file)))
      (goto-char (point-min)))))

(defun gemini-companion-lookup-shared (locations then)
  "Call THEN with those of LOCATIONS that may be shared, in order.
LOCATIONS are lists of FILE, and optionally LINE.  In the argument of THEN,
FILE is a true name."
  (gemini-companion-lookup-map-in-slices
   (pcase-lambda (`(,file . ,group))
     (when-let* ((name (gemini-companion-text-true-name file))
                 ((gemini-companion-context-name-shared-p name)))
       (mapcar (lambda (location) (cons name (cdr location))) group)))
   (seq-group-by #'car locations)
   (lambda (shared)
     (funcall then (seq-sort-by
                    #'car #'string<
                    (seq-sort-by (lambda (location) (or (cadr location) 0)) #'<
                                 (delete-dups shared)))))))

(defun gemini-companion-lookup--texts (locations then)
  "Call THEN with LOCATIONS, each with the beginning of its line."
  (gemini-companion-lookup-map-in-slices
   (lambda (group)
     (with-temp-buffer
       (gemini-companion-lookup--insert (car group))
       (let ((at 1))
         (mapcar (pcase-lambda (`(,file ,line))
                   (forward-line (- line at))
                   (setq at line)
                   (list file line
                         (buffer-substring-no-properties
                          (point) (min (line-end-position) (+ (point) 400)))))
                 (cdr group)))))
   (seq-group-by #'car locations)
   then))

;;;; Symbols

(defun gemini-companion-lookup-occurrences (file symbol &optional units line)
  "Return the locations of SYMBOL, a whole word, in FILE, a true name.
The value is a list of (LINE . COLUMN), see `gemini-companion-code-occurrences',
also for UNITS.  Signal a `user-error' if FILE has no SYMBOL, or no LINE, or is
too large."
  (with-temp-buffer
    (unless (gemini-companion-lookup--insert file)
      (user-error "%s is too large; use grep_search" file))
    (gemini-companion-lookup--check-line file line)
    (or (gemini-companion-code-occurrences symbol units)
        (user-error "The word %s is not in %s; name a file that has it"
                    symbol file))))

(defun gemini-companion-lookup--check-line (file line)
  "Signal a `user-error' unless this buffer, with the text of FILE, has LINE.
A LINE that is nil is no error."
  (let ((last (count-lines (point-min) (point-max))))
    (when (and line (< last line))
      (user-error "No line %d in %s, which has %d" line file last))))

(defun gemini-companion-lookup--find (file symbol line units)
  "Return the location of SYMBOL in FILE, as parameters of a request.
The location is the whole word SYMBOL nearest to LINE, or the first one if
LINE is nil.  UNITS is a function that counts the columns of a text.  Signal
an error if FILE has no SYMBOL, or no LINE, or is too large."
  (pcase-let ((`(,at . ,column)
               (car (seq-sort-by
                     (lambda (location)
                       (abs (- (car location) (or line 0))))
                     #'< (gemini-companion-lookup-occurrences
                          file symbol units line)))))
    `( :textDocument (:uri ,(gemini-companion-eglot-uri file))
       :position (:line ,(1- at) :character ,column))))

(defun gemini-companion-lookup-buffer (file)
  "Return a buffer with the language server of FILE.
Signal an error if there is none."
  (let ((buffer (or (gemini-companion-names-buffer file)
                    (gemini-companion-eglot-neighbor file))))
    (unless (and buffer (gemini-companion-eglot-server buffer))
      (user-error "No language server runs for this file; use grep_search"))
    buffer))

(defun gemini-companion-lookup-query-server (file symbol line requests answer then)
  "Ask the language server of FILE about SYMBOL, on LINE or near it.
REQUESTS is a list of (METHOD . PARAMS), to which the location of SYMBOL is
added.  FILE is open in the server meanwhile, unless it is too large.  Call
THEN with the results, some of which may be (error MESSAGE).  If there are
none, call ANSWER with the problem."
  (let* ((buffer (gemini-companion-lookup-buffer file))
         (server (gemini-companion-eglot-server buffer)))
    (gemini-companion-eglot-when-read
     server
     (lambda ()
       (gemini-companion-lookup-guarded answer
         (let* ((location (gemini-companion-lookup--find
                           file symbol line (gemini-companion-eglot-units buffer)))
                (text (unless (gemini-companion-names-buffer file)
                        (gemini-companion-text-read file)))
                (open (and text (<= (string-bytes text)
                                    gemini-companion-eglot-sendable))))
           (when open
             (gemini-companion-eglot-open file server text buffer))
           (with-current-buffer buffer
             (gemini-companion-eglot-sync))
           (gemini-companion-eglot-request
            server
            (cl-loop for (method . params) in requests
                     collect `(,method ,@location ,@params))
            (lambda (results)
              (gemini-companion-lookup-guarded answer
                ;; If a buffer visits the file now, Eglot has opened it.
                (when (and open (not (gemini-companion-names-buffer file)))
                  (gemini-companion-eglot-close file server))
                (when (and text (not open) (seq-empty-p (car results)))
                  (user-error "%s is too large to be sent to the language \
server; open it in Emacs, or use grep_search" file))
                (funcall then results)))))))
     (lambda ()
       (funcall answer '(:problem "The language server does not answer; use \
grep_search"))))))

(cl-defmethod gemini-companion-lookup
  ((_kind (eql 'references)) answer file symbol line after)
  "Find the references to SYMBOL, which occurs in FILE, on LINE if non-nil.
The plist for ANSWER has `:total', their number, and `:locations', lists
of FILE, LINE and TEXT: at most 100, after skipping AFTER of them.  If AFTER
is nil or 0, the plist also has `:busy' and `:elsewhere', see
`gemini-companion-lookup--limits'."
  (gemini-companion-lookup-guarded answer
    (let* ((file (gemini-companion-lookup-true-name file))
           (root (gemini-companion-eglot-root
                  (gemini-companion-lookup-buffer file)))
           (after (or after 0)))
      (gemini-companion-lookup--both
       (lambda (then)
         (gemini-companion-lookup-query-server
          file symbol line
          '((:textDocument/references :context (:includeDeclaration t)))
          answer then))
       ;; The search takes as long as the rest of our work, and ends before the
       ;; language server has answered.
       (lambda (then)
         (cond ((< 0 after) (funcall then nil))
               ((not (ignore-errors
                       (gemini-companion-words-search symbol root then)))
                (funcall then 'unknown))))
       (lambda (results files)
         (gemini-companion-lookup-guarded answer
           (gemini-companion-lookup-shared
            (gemini-companion-eglot-locations (car results))
            (lambda (locations)
              (gemini-companion-lookup--texts
               (seq-take (seq-drop locations after) 100)
               (lambda (references)
                 (let ((facts (list :total (length locations)
                                    :locations references)))
                   (if (< 0 after)
                       (funcall answer facts)
                     (gemini-companion-lookup--limits
                      file files (mapcar #'car locations) answer
                      (lambda (limits)
                        (funcall answer (append facts limits))))))))))))))))

(defun gemini-companion-lookup--both (one other then)
  "Call the functions ONE and OTHER, and then THEN with both values.
The argument of ONE and OTHER is a function, which is called with the value,
maybe later."
  (let ((values (list nil nil))
        (waiting 2))
    (cl-flet ((receive (index value)
                (setf (nth index values) value)
                (when (zerop (cl-decf waiting))
                  (apply then values))))
      (funcall one (apply-partially #'receive 0))
      (funcall other (apply-partially #'receive 1)))))

(defun gemini-companion-lookup--limits (file files reported answer then)
  "Call THEN with a plist about what the answer of a server may lack.
The server of FILE has named the files REPORTED for a symbol.  FILES are all
files that contain its name, or `unknown'.  `:busy' is non-nil if the server is
still at work.  `:elsewhere' lists the other shared ones of FILES of the same
language, in order, or is `unknown'.  After an error, call ANSWER."
  (gemini-companion-lookup-guarded answer
    (let ((busy (gemini-companion-errors-busy-p
                 (gemini-companion-eglot-server
                  (gemini-companion-lookup-buffer file))))
          (language (gemini-companion-eglot-language file)))
      (gemini-companion-lookup-shared
       (cl-loop for name in (and (listp files) files)
                when (equal language (gemini-companion-eglot-language name))
                collect (list name))
       (lambda (shared)
         (funcall then
                  (list :busy (and busy t)
                        :elsewhere (if (listp files)
                                       (seq-difference (mapcar #'car shared)
                                                       reported)
                                     files))))))))

(cl-defmethod gemini-companion-lookup
  ((_kind (eql 'definition)) answer file symbol line &rest _)
  "Find the definition of SYMBOL, which occurs in FILE, on LINE if non-nil.
The plist for ANSWER has `:locations', lists of FILE and LINE, and
`:documentation', with the signature, and `:source', maybe nil or empty."
  (gemini-companion-lookup-guarded answer
    (let ((file (gemini-companion-lookup-true-name file)))
      (if (string-suffix-p ".el" file)
          (let ((lisp (intern-soft symbol)))
            (with-temp-buffer
              (when (gemini-companion-lookup--insert file)
                (gemini-companion-lookup--check-line file line)))
            (gemini-companion-lookup--answer-definition
             symbol
             (delq nil (mapcar (apply-partially
                                #'gemini-companion-lookup--elisp-location lisp)
                               (list (symbol-function lisp) 'defvar 'defface)))
             (ignore-errors
               (or (and (fboundp lisp) (documentation lisp t))
                   (documentation-property lisp 'variable-documentation t)))
             answer))
        (gemini-companion-lookup-query-server
         file symbol line
         '((:textDocument/definition) (:textDocument/hover))
         answer
         (pcase-lambda (`(,definition ,hover))
           (gemini-companion-lookup--answer-definition
            symbol (gemini-companion-eglot-locations definition)
            (gemini-companion-lookup--hover hover) answer)))))))

(defun gemini-companion-lookup--answer-definition (symbol locations documentation answer)
  "Call ANSWER with the definition of SYMBOL at LOCATIONS.
DOCUMENTATION is a string or nil.  The answer has nothing about a definition
in a file that may not be shared, and only the location, not the text, of a
definition outside the roots."
  (let* ((locations (cl-loop for (file line) in locations
                             for name = (gemini-companion-text-true-name file)
                             when name collect (list name line)))
         (open (cl-remove-if #'gemini-companion-privacy-name-hidden-p locations
                             :key #'car))
         (first (cl-find-if #'gemini-companion-context-name-shared-p open :key #'car)))
    (unless open
      (user-error (if locations
                      "The definition of %s is in a file that Emacs does not \
share"
                    "No definition of %s was found")
                  symbol))
    (funcall answer
             (list :locations open
                   ;; The documentation may belong to any of the locations.
                   :documentation (and (length= open (length locations))
                                       documentation)
                   :source (when first
                             (with-temp-buffer
                               (gemini-companion-lookup--insert (car first))
                               (forward-line (1- (cadr first)))
                               (gemini-companion-code-definition)))))))

(defun gemini-companion-lookup--hover (result)
  "Return the text in RESULT of a hover request, maybe empty."
  ;; A failed request has no contents.
  (let ((contents (plist-get result :contents)))
    (gemini-companion-text-trim
     (mapconcat (lambda (part) (if (stringp part) part (plist-get part :value)))
                (if (vectorp contents) contents (list contents))
                "\n"))))

(defun gemini-companion-lookup--elisp-location (symbol type)
  "Return the location of the Lisp SYMBOL as (FILE LINE), or nil.
For TYPE, see `find-lisp-object-file-name'."
  (when-let* ((file (and type (find-lisp-object-file-name symbol type)))
              ((stringp file))
              ((file-exists-p file)))
    (list file
          (with-temp-buffer
            (gemini-companion-lookup--insert file)
            (if (re-search-forward
                 (format "^[ \t]*([[:alnum:]-]*def[^ ]* +(?'?%s\\_>"
                         (regexp-quote (symbol-name symbol)))
                 nil t)
                (line-number-at-pos)
              1)))))

;;;; Diagnostics

(cl-defmethod gemini-companion-lookup
  ((_kind (eql 'diagnostics)) answer file &rest _)
  "Find the diagnostics of FILE, or of all checked files if it is nil.
The plist for ANSWER has `:rows', lists of LINE, SEVERITY and TEXT, or
of FILE and the numbers of its errors and warnings."
  (gemini-companion-lookup-guarded answer
    (if file
        (gemini-companion-lookup--await-check file answer (+ 3 (float-time)))
      (gemini-companion-lookup-shared
       (mapcar #'list
               (append (mapcar #'car (bound-and-true-p flymake-list-only-diagnostics))
                       (mapcar #'buffer-file-name
                               (seq-filter #'gemini-companion-errors-checker
                                           (buffer-list)))))
       (lambda (files)
         (cl-loop
          for (name) in files
          for rows = (ignore-errors (gemini-companion-lookup--of-file name))
          collect (list name
                        (cl-count "error" rows :key #'cadr :test #'equal)
                        (cl-count "warning" rows :key #'cadr :test #'equal))
          into counts
          finally (funcall answer (list :rows counts))))))))

(defun gemini-companion-lookup--await-check (file answer end)
  "Call ANSWER with the diagnostics of FILE once its text has been checked.
Wait until END at most, a `float-time'."
  (gemini-companion-lookup-guarded answer
    (let* ((file (gemini-companion-lookup-true-name file))
           (buffer (gemini-companion-names-buffer file)))
      (cond ((or (null buffer)
                 (with-current-buffer buffer
                   (gemini-companion-errors-answerable-p)))
             (funcall answer (list :rows (gemini-companion-lookup--of-file file))))
            ((< (float-time) end)
             (run-at-time 0.05 nil #'gemini-companion-lookup--await-check
                          file answer end))
            (t (user-error "Emacs has not checked the current text of this \
file yet; ask again"))))))

(defun gemini-companion-lookup--of-file (file)
  "Return the diagnostics of FILE, lists of LINE, SEVERITY and TEXT.
Signal an error if it is not checked."
  (if-let* ((buffer (gemini-companion-names-buffer file))
            ((with-current-buffer buffer (gemini-companion-errors-checkable-p))))
      (with-current-buffer buffer
        (gemini-companion-errors-diagnostics))
    (mapcar #'gemini-companion-errors-of-flymake
            ;; No diagnostics for a file may mean that the server does not check it.
            (or (cdr (assoc file (bound-and-true-p
                                  flymake-list-only-diagnostics)))
                (user-error "Emacs does not check this file; run the checks \
of the project")))))

(provide 'gemini-companion-lookup)
;;; gemini-companion-lookup.el ends here
