;;; gemini-companion-lookup.el --- What Emacs knows of code  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Answers to the questions of a model about a symbol or the diagnostics of a
;; file, and the errors that an edit of a CLI introduced.  They come from the
;; language servers that Eglot runs, from Flymake and Flycheck, and for Lisp from
;; this Emacs.  Nothing that the user sees changes: no file is visited, and nothing
;; waits for a server.  Long work is done in slices.
;;
;; A report about an edit is believed if it is about the text that was written: if
;; it names the version of that text, if it answers a request that was sent after
;; the text, or if Flymake or Flycheck began to check that text.  Of a file that no
;; buffer visits, the language server of its project gets the text after the edit,
;; and the text before it.

;;; Code:

(require 'flymake)
(require 'gemini-companion-code)
(require 'gemini-companion-context)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-privacy)
(require 'gemini-companion-roots)
(require 'gemini-companion-server-log)
(require 'gemini-companion-text)
(require 'jsonrpc)
(require 'map)

(declare-function flycheck-buffer "ext:flycheck")
(declare-function flycheck-error-filename "ext:flycheck" t t)
(declare-function flycheck-error-level "ext:flycheck" t t)
(declare-function flycheck-error-level-compilation-level "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck" t t)
(declare-function flycheck-error-message "ext:flycheck" t t)
(declare-function flycheck-stop "ext:flycheck")
(defvar flycheck-current-errors)
(defvar flycheck-last-status-change)

;;;; Limits

(defconst gemini-companion-lookup--sendable (* 128 1024)
  "Size in bytes above which the text of a file is not sent to a server.
A pipe holds 64 KB; even after the server has answered a request, Emacs
waits until it has read the rest.")

(defconst gemini-companion-lookup--largest (* 512 1024)
  "Size in bytes of a text above which it is not checked.")

(defvar gemini-companion-lookup-timeout 2.6
  "Seconds after which an unfinished check ends without a result.
The CLI waits for it.")

;;;; Questions

(cl-defgeneric gemini-companion-lookup (kind answer file &rest details)
  "Answer a question of KIND about FILE: call ANSWER, maybe later.
The argument of ANSWER is a plist, with `:problem' if there is no answer;
for it and DETAILS, see the method for KIND.")

(defmacro gemini-companion-lookup--guarded (answer &rest body)
  "Evaluate BODY without a message; if it fails, call ANSWER with the `:problem'.
The match data, which a timer or a filter must not change, are kept."
  (declare (indent 1) (debug t))
  (let ((problem (make-symbol "problem")))
    `(condition-case ,problem
         (save-match-data
           (let ((inhibit-message t)
                 (message-log-max nil))
             ,@body))
       (user-error (funcall ,answer (list :problem (cadr ,problem))))
       ;; The message of another error may contain text of a file.
       (error
        (funcall ,answer (list :problem (format "Emacs failed: %s"
                                                (car ,problem))))))))

(defun gemini-companion-lookup--map-in-slices (function list done &optional values)
  "Call FUNCTION with each element of LIST, then DONE with the values, appended.
Emacs handles keys in between.  VALUES are the values of the elements before,
the last one first."
  (gemini-companion-lookup--guarded #'ignore
    (if (null list)
        (funcall done (apply #'append (nreverse values)))
      (let ((end (+ (float-time) 0.003)))       ; then Emacs handles keys again
        (while (and list (< (float-time) end))
          (push (ignore-errors (funcall function (pop list))) values))
        ;; DONE may do as much work again.
        (run-at-time 0 nil #'gemini-companion-lookup--map-in-slices
                     function list done values)))))

;;;; Files

(defun gemini-companion-lookup--shared-p (file)
  "Return non-nil if FILE, a true name, may be shared."
  (and (not gemini-companion-context-paused)
       (not (gemini-companion-text-unreadable-reason file))
       (not (gemini-companion-privacy-name-hidden-p file))
       (or gemini-companion-share-outside-projects
           (car (gemini-companion-roots-outermost file)))))

(defun gemini-companion-lookup--true-name (file)
  "Return the true name of FILE, a file that may be shared.
Signal an error if FILE does not exist or may not be shared."
  (let ((name (gemini-companion-text-true-name file)))
    (unless (and name (gemini-companion-lookup--shared-p name)
                 ;; A link to it may be hidden.
                 (not (gemini-companion-privacy-name-hidden-p file)))
      (user-error "%s is not shared by Emacs" file))
    (unless (file-regular-p name)
      (user-error "There is no file %s" file))
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

;;;; Language servers

(defun gemini-companion-lookup--eglot (name &rest args)
  "Call the function NAME of Eglot with ARGS; return nil if it has none.
Before Emacs 30, some of the names had two hyphens."
  (let ((old (string-replace "eglot-" "eglot--" (symbol-name name))))
    (apply (or (seq-find #'fboundp (list name (intern old))) #'ignore) args)))

(defun gemini-companion-lookup--managed-p ()
  (gemini-companion-lookup--eglot 'eglot-managed-p))

(defun gemini-companion-lookup--server (buffer)
  (with-current-buffer buffer
    (when-let* (((gemini-companion-lookup--managed-p))
                (server (gemini-companion-lookup--eglot 'eglot-current-server))
                ((jsonrpc-running-p server)))
      server)))

(defun gemini-companion-lookup--uri (file)
  (gemini-companion-lookup--eglot 'eglot-path-to-uri file))

(defun gemini-companion-lookup--path (uri)
  "Return the name of the file with URI, or nil if URI names no file."
  (when (string-prefix-p "file://" uri)
    (decode-coding-string
     (url-unhex-string (string-remove-prefix "file://" uri)) 'utf-8)))

(defun gemini-companion-lookup--neighbor (file)
  "Return a buffer with the language server of FILE, or nil.
It visits a file with the same extension, or both are of C or C++, and FILE
is below the root of its server; if there are several such roots, take the
innermost."
  (let ((kind (lambda (name)
                (replace-regexp-in-string
                 "\\`[ch]\\(?:[ch]\\|pp\\|xx\\|\\+\\+\\)?\\'" "c"
                 (or (file-name-extension name) ""))))
        best)
    (dolist (buffer (buffer-list) (car best))
      (when-let* ((other (buffer-file-name buffer))
                  ((not (file-remote-p other)))
                  ((equal (funcall kind file) (funcall kind other)))
                  (server (gemini-companion-lookup--server buffer))
                  (folders (gemini-companion-lookup--eglot
                            'eglot-workspace-folders server))
                  (root (gemini-companion-lookup--path
                         (plist-get (aref folders 0) :uri)))
                  ((gemini-companion-text-in-directory-p file root))
                  ((< (length (cdr best)) (length root))))
        (setq best (cons buffer root))))))

(defun gemini-companion-lookup--query-server (file symbol line requests answer then)
  "Ask the language server of FILE about SYMBOL, on LINE or near it.
REQUESTS is a list of (METHOD . PARAMS), without the location of SYMBOL.
FILE is open in the server meanwhile, unless it is too large.  Call THEN
with the results, some of which may be (error MESSAGE), or else ANSWER."
  (let* ((buffer (or (gemini-companion-names-buffer file)
                     (gemini-companion-lookup--neighbor file)))
         (server (or (and buffer (gemini-companion-lookup--server buffer))
                     (user-error "No language server runs for this file; \
use grep_search"))))
    (gemini-companion-lookup--when-read
     server answer
     (lambda ()
       (let* ((location (gemini-companion-lookup--find file symbol line))
              (text (unless (gemini-companion-names-buffer file)
                      (gemini-companion-text-read file)))
              (open (and text (<= (string-bytes text)
                                  gemini-companion-lookup--sendable))))
         (when open
           (gemini-companion-lookup--open file server text buffer))
         (with-current-buffer buffer
           (gemini-companion-lookup--sync))
         (gemini-companion-lookup--request
          server
          (cl-loop for (method . params) in requests
                   collect `(,method ,@location ,@params))
          (lambda (results)
            (gemini-companion-lookup--guarded answer
              ;; The user may visit the file meanwhile.
              (when (and open (not (gemini-companion-names-buffer file)))
                (gemini-companion-lookup--close file server))
              (when (and text (not open) (seq-empty-p (car results)))
                (user-error "%s is too large to be sent to the language \
server; open it in Emacs, or use grep_search" file))
              (funcall then results)))))))))

(defun gemini-companion-lookup--when-read (server answer send)
  "Call SEND once SERVER has answered that it does not know a method.
Sending a text to a server that does not read would block Emacs.  If it
does not answer, or SEND fails, call ANSWER with the `:problem'."
  (gemini-companion-lookup--request
   server '((:$/gemini-companion))
   (lambda (results)
     (gemini-companion-lookup--guarded answer
       (when (equal '(error nil) (car results))
         (user-error "The language server does not answer; use grep_search"))
       (funcall send)))))

(defun gemini-companion-lookup--request (server requests then)
  "Send SERVER the REQUESTS, a list of (METHOD . PARAMS).
Call THEN with a list of the results in their order, once all are known.
One that failed is (error MESSAGE), with nil if it was not answered."
  (let* ((left (length requests))
         (results (make-list left nil)))
    (seq-do-indexed
     (pcase-lambda (`(,method . ,params) index)
       (let ((done (lambda (result)
                     (setf (nth index results) result)
                     (when (zerop (cl-decf left))
                       (funcall then results)))))
         (jsonrpc-async-request
          server method params
          :success-fn done
          :error-fn (lambda (problem)
                      (funcall done (list 'error (plist-get problem :message))))
          :timeout-fn (apply-partially done '(error nil))
          :timeout 14)))
     requests)))

(defvar gemini-companion-lookup--version 0
  "The version of the last text that was sent, of any file.
A late report about an earlier text cannot be taken for a later one.")

(defun gemini-companion-lookup--open (file server text neighbor)
  "Open FILE, a true name, with TEXT in SERVER; return the version of TEXT.
NEIGHBOR is a buffer of a file of the same language."
  (jsonrpc-notify
   server :textDocument/didOpen
   `(:textDocument
     ( :uri ,(gemini-companion-lookup--uri file)
       :version ,(cl-incf gemini-companion-lookup--version)
       :languageId ,(with-current-buffer neighbor
                      (plist-get (gemini-companion-lookup--eglot
                                  'eglot--TextDocumentItem)
                                 :languageId))
       :text ,text)))
  gemini-companion-lookup--version)

(defun gemini-companion-lookup--close (file server)
  (jsonrpc-notify server :textDocument/didClose
                  `(:textDocument (:uri ,(gemini-companion-lookup--uri file)))))

(defun gemini-companion-lookup--locations (result)
  "Return RESULT, locations, as a list of (FILE LINE).
Signal an error if RESULT is an error."
  (when (eq 'error (car-safe result))
    (user-error "The language server failed: %s"
                (or (cadr result) "no answer in time")))
  (delete-dups
   (mapcar (lambda (location)
             (let ((range (or (plist-get location :targetSelectionRange)
                              (plist-get location :range))))
               (list (gemini-companion-lookup--path
                      (or (plist-get location :targetUri)
                          (plist-get location :uri)))
                     (1+ (plist-get (plist-get range :start) :line)))))
           (if (keywordp (car-safe result))
               (list result)
             (append result nil)))))

;;;; Reading

(defvar-local gemini-companion-lookup--begun nil
  "Tick of the text that Flymake or Flycheck has begun to check last.")

(defvar-local gemini-companion-lookup--last-report nil
  "Last report about this buffer, or nil.
A list (TICK ERRORS VERSION): the tick of the text, its errors, and the
version that the report of a language server named, or nil.  TICK is nil
if the next report may be about a file that was closed.")
;; A revert may turn on the major mode.
(put 'gemini-companion-lookup--last-report 'permanent-local t)

(defvar-local gemini-companion-lookup--sent nil
  "Cons of the version of the text that Eglot has sent last, and its tick.")

(defun gemini-companion-lookup--checker (buffer)
  "Return the mode for diagnostics in BUFFER, or nil."
  (with-current-buffer buffer
    (cond ((and flymake-mode
                ;; Others than Eglot count from the first visible line.
                (or (not (buffer-narrowed-p)) (gemini-companion-lookup--managed-p)))
           'flymake-mode)
          ((bound-and-true-p flycheck-mode) 'flycheck-mode))))

(defun gemini-companion-lookup--begins (&optional report &rest _)
  "Record that Flymake or Flycheck begins to check this text.
This is also a backend of Flymake, which calls REPORT with no errors."
  (setq gemini-companion-lookup--begun (buffer-chars-modified-tick))
  (when report
    (funcall report nil)))

(defun gemini-companion-lookup--flycheck-ended ()
  "Keep the errors of this buffer, which Flycheck clears before a revert."
  (gemini-companion-server-log-guarded 'errors
    (when-let* ((known (gemini-companion-lookup--checked-errors)))
      (setq gemini-companion-lookup--last-report
            (cons gemini-companion-lookup--begun known)))))

(defun gemini-companion-lookup--start-check ()
  "Start a check by Flymake or Flycheck, unless one has begun.
By itself one may begin only when the buffer is displayed."
  (unless (eql gemini-companion-lookup--begun (buffer-chars-modified-tick))
    (pcase (gemini-companion-lookup--checker (current-buffer))
      ('flymake-mode (flymake-start)
                     ;; A buffer may have only backends of its own.
                     (gemini-companion-lookup--begins))
      ('flycheck-mode (flycheck-stop)
                      (flycheck-buffer)))))

(defun gemini-companion-lookup--checkable-p ()
  "Return non-nil if Flymake or Flycheck can check the current buffer."
  (pcase (gemini-companion-lookup--checker (current-buffer))
    ('flymake-mode
     ;; Flymake keeps the state of a language server that has ended.
     (remq #'gemini-companion-lookup--begins
           (seq-intersection
            (flymake-running-backends)
            (append flymake-diagnostic-functions
                    (default-value 'flymake-diagnostic-functions)))))
    ('flycheck-mode
     (not (memq flycheck-last-status-change '(no-checker errored))))))

(defun gemini-companion-lookup--checked-errors ()
  "Return a list of the errors that Flymake or Flycheck has found in this text.
Return nil if it has not checked this text."
  (when (and (eql gemini-companion-lookup--begun (buffer-chars-modified-tick))
             (gemini-companion-lookup--checkable-p)
             (if flymake-mode
                 (null (seq-difference (flymake-running-backends)
                                       (flymake-reporting-backends)))
               (eq 'finished flycheck-last-status-change)))
    (list (cl-loop for (line severity text)
                   in (gemini-companion-lookup--of-buffer)
                   when (equal severity "error")
                   collect (list line text nil)))))

(defun gemini-companion-lookup--of-buffer ()
  "Return what Flymake or Flycheck has in this buffer.
They are lists of LINE, SEVERITY and TEXT."
  (if (eq 'flycheck-mode (gemini-companion-lookup--checker (current-buffer)))
      (cl-loop
       for error in flycheck-current-errors
       for file = (flycheck-error-filename error)
       ;; Another file may not be shared.
       when (or (null file) (file-equal-p file buffer-file-name))
       collect (gemini-companion-lookup--row
                (flycheck-error-line error)
                ;; Other packages define levels.
                (flycheck-error-level-compilation-level
                 (flycheck-error-level error))
                (or (flycheck-error-message error) "")))
    (save-restriction
      (widen)
      (mapcar #'gemini-companion-lookup--of-flymake (flymake-diagnostics)))))

(defun gemini-companion-lookup--of-flymake (diagnostic)
  (let ((type (flymake-diagnostic-type diagnostic))
        (beginning (flymake-diagnostic-beg diagnostic)))
    (gemini-companion-lookup--row
     ;; In a file without a buffer, the beginning is (LINE . COLUMN).
     (if (consp beginning) (car beginning) (line-number-at-pos beginning))
     (or (get type 'flymake-category) type)
     (flymake-diagnostic-text diagnostic))))

(defun gemini-companion-lookup--row (line level text)
  (list line
        (pcase level
          ((or 2 :error 'flymake-error) "error")
          ((or 1 :warning 'flymake-warning) "warning")
          (_ "note"))
        (string-replace "\n" " " text)))

;;;; Questions about symbols

(defun gemini-companion-lookup--find (file symbol line)
  "Return the location of SYMBOL in FILE, the parameters of a request.
It is the whole word SYMBOL that is nearest to LINE, or the first one if
LINE is nil.  Signal an error if FILE does not have it, or is too large."
  (with-temp-buffer
    (unless (gemini-companion-lookup--insert file)
      (user-error "%s is too large; use grep_search" file))
    (pcase (car (seq-sort-by (lambda (place) (abs (- (car place) (or line 0))))
                             #'< (gemini-companion-code-occurrences symbol)))
      ('nil (user-error "The word %s is not in %s" symbol file))
      (`(,at . ,column)
       `( :textDocument (:uri ,(gemini-companion-lookup--uri file))
          :position (:line ,(1- at) :character ,column))))))

(cl-defmethod gemini-companion-lookup
  ((_kind (eql 'references)) answer file symbol line after)
  "Find the references to SYMBOL, which occurs in FILE, on LINE if non-nil.
The plist for ANSWER has `:total', their number, and `:locations', lists
of FILE, LINE and TEXT, 100 at most, without the first AFTER."
  (gemini-companion-lookup--guarded answer
    (gemini-companion-lookup--query-server
     (gemini-companion-lookup--true-name file) symbol line
     '((:textDocument/references :context (:includeDeclaration t)))
     answer
     (lambda (results)
       (gemini-companion-lookup--shared
        (gemini-companion-lookup--locations (car results))
        (lambda (locations)
          (gemini-companion-lookup--texts
           (seq-take (seq-drop locations (or after 0)) 100)
           (lambda (found)
             (funcall answer
                      (list :total (length locations) :locations found))))))))))

(defun gemini-companion-lookup--shared (locations then)
  "Call THEN with those of LOCATIONS that may be shared, in order.
They are lists of FILE, whose true name is given to THEN, and maybe LINE."
  (gemini-companion-lookup--map-in-slices
   (pcase-lambda (`(,file . ,group))
     (when-let* ((name (gemini-companion-text-true-name file))
                 ((gemini-companion-lookup--shared-p name)))
       (mapcar (lambda (location) (cons name (cdr location))) group)))
   (seq-group-by #'car locations)
   (lambda (shared)
     (funcall then (seq-sort-by
                    #'car #'string<
                    (seq-sort-by (lambda (location) (or (cadr location) 0)) #'<
                                 (delete-dups shared)))))))

(defun gemini-companion-lookup--texts (locations then)
  "Call THEN with LOCATIONS, each with the beginning of its line."
  (gemini-companion-lookup--map-in-slices
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

(cl-defmethod gemini-companion-lookup
  ((_kind (eql 'definition)) answer file symbol line &rest _)
  "Find the definition of SYMBOL, which occurs in FILE, on LINE if non-nil.
The plist for ANSWER has `:locations', lists of FILE and LINE, and
`:documentation', with the signature, and `:source', maybe nil or empty."
  (gemini-companion-lookup--guarded answer
    (let ((file (gemini-companion-lookup--true-name file)))
      (if (string-suffix-p ".el" file)
          (let ((lisp (intern-soft symbol)))
            (gemini-companion-lookup--answer-definition
             symbol
             (delq nil (mapcar (apply-partially
                                #'gemini-companion-lookup--elisp-location lisp)
                               (list (symbol-function lisp) 'defvar 'defface)))
             (ignore-errors
               (or (and (fboundp lisp) (documentation lisp t))
                   (documentation-property lisp 'variable-documentation t)))
             answer))
        (gemini-companion-lookup--query-server
         file symbol line
         '((:textDocument/definition) (:textDocument/hover))
         answer
         (pcase-lambda (`(,definition ,hover))
           (gemini-companion-lookup--answer-definition
            symbol (gemini-companion-lookup--locations definition)
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
         (first (cl-find-if #'gemini-companion-lookup--shared-p open :key #'car)))
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
  "Return the text in RESULT of a request for the hover, maybe empty."
  ;; A failed request has no contents.
  (let ((contents (plist-get result :contents)))
    (string-trim
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

;;;; Questions about diagnostics

(cl-defmethod gemini-companion-lookup
  ((_kind (eql 'diagnostics)) answer file &rest _)
  "Find the diagnostics of FILE, or of all checked files if it is nil.
The plist for ANSWER has `:rows', lists of LINE, SEVERITY and TEXT, or
of FILE and the numbers of its errors and warnings."
  (gemini-companion-lookup--guarded answer
    (if file
        (gemini-companion-lookup--await-check file answer (+ 3 (float-time)))
      (gemini-companion-lookup--shared
       (mapcar #'list
               (append (mapcar #'car (bound-and-true-p flymake-list-only-diagnostics))
                       (mapcar #'buffer-file-name
                               (seq-filter #'gemini-companion-lookup--checker
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
  "Call ANSWER with the diagnostics of FILE when its text has been checked.
Wait until END at most, which is a `float-time'."
  (gemini-companion-lookup--guarded answer
    (let* ((file (gemini-companion-lookup--true-name file))
           (buffer (gemini-companion-names-buffer file)))
      (cond ((or (null buffer)
                 (with-current-buffer buffer
                   (gemini-companion-lookup--answerable-p)))
             (funcall answer (list :rows (gemini-companion-lookup--of-file file))))
            ((< (float-time) end)
             (run-at-time 0.05 nil #'gemini-companion-lookup--await-check
                          file answer end))
            (t (user-error "Emacs has not checked the current text of this \
file yet; ask again"))))))

(defun gemini-companion-lookup--answerable-p ()
  "Return non-nil unless this text is yet to be checked.
Have it checked if necessary."
  (gemini-companion-lookup--start-check)
  (or (not (gemini-companion-lookup--checkable-p))
      (and (verify-visited-file-modtime)
           (gemini-companion-lookup--checked-errors)
           ;; Flymake does not know whether a server has yet to report; of one
           ;; that names no versions, it is not known either.
           (or (not (gemini-companion-lookup--managed-p))
               (and gemini-companion-lookup--last-report
                    (null (nth 2 gemini-companion-lookup--last-report)))
               (eql (car gemini-companion-lookup--last-report)
                    (buffer-chars-modified-tick))))))

(defun gemini-companion-lookup--of-file (file)
  "Return the diagnostics of FILE, lists of LINE, SEVERITY and TEXT.
Signal an error if it is not checked."
  (if-let* ((buffer (gemini-companion-names-buffer file))
            ((with-current-buffer buffer (gemini-companion-lookup--checkable-p))))
      (with-current-buffer buffer
        (gemini-companion-lookup--of-buffer))
    (mapcar #'gemini-companion-lookup--of-flymake
            ;; A server also reports none for a file that it does not check.
            (or (cdr (assoc file (bound-and-true-p
                                  flymake-list-only-diagnostics)))
                (user-error "Emacs does not check this file; run the checks \
of the project")))))

;;;; Checks

(defvar gemini-companion-lookup--checks nil
  "The checks, of which only the first one runs.
The texts that another check sends would disturb it.

Each is an alist: `file' is a true name, whose text was `before', and is
`after' now.  `callback' is called at the end, at the time `end' at the
latest.  `source' is the buffer that visits `file', or else one of its
language server, `server', which has the text with `version' then.
`old' and `new' are the elements of `gemini-companion-lookup--known' for
the two texts, and `left' those of them that are to be known.  `others'
are the buffers that have one of `names', a regexp for the names of
definitions that were changed, or nil.")

(defvar gemini-companion-lookup--known nil
  "List of ((FILE . TEXT) FOUND ASKED), the last texts.
FILE is a true name.  FOUND is a list of the errors, once they are known.
ASKED is the version of the text if a report is to name that, or else t
once they were asked for.  A change of another file forgets them.")

(defvar gemini-companion-lookup--earlier-reports nil
  "Alist of buffers and the last report about each before a text was replaced.")

(defvar gemini-companion-lookup--busy nil
  "Work in progress of the language servers, a list of (SERVER . TOKEN).")

(defun gemini-companion-lookup--expect (file text)
  "Return a new element of `gemini-companion-lookup--known'.
It is for TEXT of FILE, a true name, whose errors may have changed."
  (let ((key (cons file text)))
    (setq gemini-companion-lookup--known
          (seq-take (assoc-delete-all key gemini-companion-lookup--known) 7))
    (car (push (list key nil nil) gemini-companion-lookup--known))))

(defun gemini-companion-lookup--forget-others (file)
  "Forget the errors of other files than FILE, as its change may change them."
  (setq gemini-companion-lookup--known
        (seq-filter (pcase-lambda (`((,other . ,_) ,found . ,_))
                      (or (equal file other) (null found)))
                    gemini-companion-lookup--known)))

(cl-defmethod gemini-companion-lookup
  ((_kind (eql 'edited)) answer file before after)
  "Find the errors that an edit of FILE made.
FILE is an absolute name; a CLI has changed its text from BEFORE,
nil if there was no such file, to AFTER, and the buffers that visit
it were reverted.  The plist for ANSWER has `:path', the true name of
FILE; `:count', the number of new errors; `:errors', ten of them at
most, lists of LINE, TEXT and SOURCE; and `:others', lists of another
file, the number of its new errors, and the first one.  It is nil if
there are none, or if they are not known within three seconds."
  (let ((file (or (gemini-companion-text-true-name file) file)))
    (gemini-companion-lookup--forget-others file)
    ;; The edit may repair errors of other files, so these are checked again.
    (dolist (check gemini-companion-lookup--checks)
      (setf (alist-get 'source check) nil))
    (gemini-companion-lookup--end-of file)
    (if (< gemini-companion-lookup--largest
           (max (string-bytes (or before "")) (string-bytes after)))
        (funcall answer nil)
      (unless gemini-companion-lookup--checks
        (run-at-time 0 0.05 #'gemini-companion-lookup--step))
      (setq gemini-companion-lookup--checks
            (append gemini-companion-lookup--checks
                    `(((file . ,file)
                       (before . ,(and before
                                       (gemini-companion-text-normalized before)))
                       (after . ,(gemini-companion-text-normalized after))
                       (callback . ,answer)
                       (end . ,(+ (float-time) gemini-companion-lookup-timeout))
                       ,@(mapcar #'list '(source server version old new left
                                                 names others)))))))))

(defun gemini-companion-lookup--step ()
  "Continue the first check, and end those whose time is up."
  (dolist (check gemini-companion-lookup--checks)
    (let-alist check
      (condition-case nil
          (save-match-data
            (cond ((< .end (float-time))
                   (when (or .left (not .source))
                     (error "Its time is up"))
                   ;; What is known of other files is enough.
                   (gemini-companion-lookup--finish check))
                  ((eq check (car gemini-companion-lookup--checks))
                   (unless .source
                     (gemini-companion-lookup--begin check))
                   (gemini-companion-lookup--learn check))))
        ;; Or a server has ended, or a buffer was killed or has another text.
        (error (gemini-companion-lookup--end check nil))))))

(defun gemini-companion-lookup--begin (check)
  "Find out who knows about the file of CHECK, and which texts to ask about.
Signal an error if no checker knows about it, or if it may not be shared."
  (let-alist check
    (let* ((buffer (gemini-companion-names-buffer .file))
           (source (or buffer (gemini-companion-lookup--neighbor .file)))
           (server (and source (gemini-companion-lookup--server source))))
      (unless (and (or server
                       (and buffer (gemini-companion-lookup--checker buffer)))
                   (or buffer
                       (<= (max (string-bytes (or .before ""))
                                (string-bytes .after))
                           gemini-companion-lookup--sendable))
                   (gemini-companion-lookup--shared-p .file))
        (error "Nothing checks the file"))
      (let* ((others (gemini-companion-lookup--find-others check server))
             (answers (with-current-buffer source
                        (gemini-companion-lookup--error-requests .file)))
             (known (assoc (cons .file .before) gemini-companion-lookup--known))
             ;; A server need not report about a text like the last one; a
             ;; request that was sent will be answered.
             (usable (if buffer
                         (nth (if answers 2 1) known)
                       (and (nth 1 known) (not (or answers others)))))
             (old (cond (usable known)
                        ((and .before (not buffer))
                         (gemini-companion-lookup--expect .file .before))))
             (new (gemini-companion-lookup--expect .file .after)))
        (setf (alist-get 'source check) source
              (alist-get 'server check) server
              (alist-get 'others check) others
              (alist-get 'old check) old
              (alist-get 'new check) new
              (alist-get 'left check)
              (cond ((null old) (list new))
                    ((or buffer (and answers (null others))) (list new old))
                    ;; The server may know the text after the edit from the file.
                    (others (list old new))
                    ;; Other programs may have changed what was known.
                    (t `(,new ,old ,@(and usable (list old)) ,new))))))))

(defun gemini-companion-lookup--learn (check)
  "Ask for the errors of the texts of CHECK, and end it when all are known."
  (let-alist check
    (let* ((known (car .left))
           (last (eq known .new))
           (buffer (and last (gemini-companion-names-buffer .file))))
      (when (and buffer
                 (not (string= .after (gemini-companion-text-of-buffer buffer))))
        (error "The buffer has another text"))
      (cond
       ((null known)
        (unless (seq-some (lambda (buffer)
                            (eq (alist-get
                                 buffer gemini-companion-lookup--earlier-reports)
                                (buffer-local-value
                                 'gemini-companion-lookup--last-report buffer)))
                          .others)
          (gemini-companion-lookup--finish check)))
       ((equal '(nil nil) (cdr known))
        (gemini-companion-lookup--ask check known))
       ((assq .server gemini-companion-lookup--busy))
       (t
        (when buffer
          (with-current-buffer buffer
            (unless (gemini-companion-lookup--error-requests .file)
              (setf (nth 1 known) (gemini-companion-lookup--current)))))
        (when-let* ((found (nth 1 known)))
          (setf (alist-get 'left check)
                ;; Without errors after the edit, those before do not matter.
                (and (or (car found) (not last)) (cdr .left)))
          (when (and (cdr .left) (not last)
                     (gemini-companion-lookup--doubtful-p check))
            (dolist (again (cdr .left))
              (setcdr again (list nil nil))))
          (when last
            (gemini-companion-lookup--ask-others check))
          (gemini-companion-lookup--learn check)))))))

(defun gemini-companion-lookup--doubtful-p (check)
  "Return non-nil unless all new errors of CHECK are in lines of its edit.
A server that is loading files may report others for a while."
  (let-alist check
    (cl-flet ((new (found)
                (gemini-companion-code-new-errors
                 (car (nth 1 .new)) .after found .before)))
      (or (string-blank-p .before)
          (seq-difference (new (nth 1 .old)) (new nil))))))

(defun gemini-companion-lookup--ask (check known)
  "Have the file of KNOWN checked, for CHECK; what is known then is noticed.
KNOWN is one of `gemini-companion-lookup--known'."
  (setf (nth 2 known) t)
  (let-alist check
    (let ((buffer (gemini-companion-names-buffer .file)))
      (if (null buffer)
          (gemini-companion-lookup--when-read
           .server #'ignore
           (lambda () (gemini-companion-lookup--send check known)))
        (with-current-buffer buffer
          (if (null .server)
              (gemini-companion-lookup--start-check)
            (when .before
              (gemini-companion-lookup--reopen .before .after))
            (gemini-companion-lookup--sync)
            (gemini-companion-lookup--request-known known)))))))

(defun gemini-companion-lookup--send (check known)
  "Send the text of KNOWN to the server of CHECK, unless CHECK has ended.
Request its errors if the server supports that."
  (let-alist check
    ;; Another edit may have begun CHECK again.
    (when (and .source
               (memq known .left)
               (memq check gemini-companion-lookup--checks))
      (when .version
        (gemini-companion-lookup--close .file .server))
      (gemini-companion-lookup--keep-reports)
      (setf (alist-get 'version check)
            (gemini-companion-lookup--open .file .server (cdar known) .source))
      (unless (with-current-buffer .source
                (gemini-companion-lookup--request-known known))
        (setf (nth 2 known) gemini-companion-lookup--version)))))

(defun gemini-companion-lookup--finish (check)
  "End CHECK with its result, if its text is still in the file."
  (let-alist check
    (let ((new (gemini-companion-code-new-errors
                (car (nth 1 .new)) .after
                (if .before (nth 1 .old) '(nil)) (or .before "")))
          (elsewhere
           (delq nil (mapcar (apply-partially
                              #'gemini-companion-lookup--new-in-other .names)
                             .others))))
      (gemini-companion-lookup--end
       check
       (and (or new elsewhere)
            (gemini-companion-lookup--shared-p .file)
            (string= .after (gemini-companion-text-normalized
                             (gemini-companion-text-read .file)))
            (list :path .file
                  :count (length new)
                  :errors (mapcar #'car (seq-take new 10))
                  :others elsewhere))))))

(defun gemini-companion-lookup--end-of (file &optional key)
  "End each check of FILE; if KEY is non-nil, each one that has it."
  (dolist (check gemini-companion-lookup--checks)
    (when (and (equal file (alist-get 'file check))
               (or (null key) (alist-get key check)))
      (gemini-companion-lookup--end check nil))))

(defun gemini-companion-lookup--end (check result)
  "End CHECK, unless it has ended, and call its callback with RESULT."
  (when (memq check gemini-companion-lookup--checks)
    (setq gemini-companion-lookup--checks
          (delq check gemini-companion-lookup--checks))
    (unless gemini-companion-lookup--checks
      (cancel-function-timers #'gemini-companion-lookup--step))
    (let-alist check
      (gemini-companion-server-log-guarded 'errors
        (when (and .version (jsonrpc-running-p .server))
          (gemini-companion-lookup--close .file .server)))
      (gemini-companion-server-log-guarded 'errors
        (funcall .callback result)))))

;;;; Errors that a language server knows

(defun gemini-companion-lookup--note-sent (_server method params)
  "Record which text of this buffer METHOD is about to send with PARAMS."
  (when-let* (((memq method '(:textDocument/didOpen :textDocument/didChange)))
              (document (plist-get params :textDocument))
              (file (gemini-companion-lookup--path (plist-get document :uri)))
              ((gemini-companion-names-visited-here-p file)))
    (when (eq method :textDocument/didOpen)
      (when (or gemini-companion-lookup--last-report
                gemini-companion-lookup--checks)
        (setq gemini-companion-lookup--last-report
              `(nil nil ,(nth 2 (or gemini-companion-lookup--last-report
                                    '(nil nil 0))))))
      ;; Eglot opens a file that a check has opened.
      (gemini-companion-lookup--end-of file 'version))
    (setq gemini-companion-lookup--sent
          (cons (plist-get document :version) (buffer-chars-modified-tick)))))

;; The private names of Eglot: it has no public ones for these.  Without them,
;; the errors in visited files are not known, and none are reported.
(defun gemini-companion-lookup--sync ()
  "Send the server the text of this buffer, if it does not have it yet.
Eglot itself waits until Emacs is idle."
  (when (gemini-companion-lookup--managed-p)
    ;; In a narrowed buffer, Eglot fails for a change elsewhere.
    (save-restriction
      (widen)
      (gemini-companion-lookup--eglot 'eglot--signal-textDocument/didChange))))

(defun gemini-companion-lookup--reopen (before after)
  "Open the file of this buffer again if BEFORE and AFTER include other files.
Until clangd has read them, it reports what the previous ones make of the text."
  (cl-flet ((includes (text)
              (seq-filter (apply-partially #'string-match-p
                                           "\\`[ \t]*#[ \t]*include")
                          (gemini-companion-text-lines text))))
    (unless (equal (includes before) (includes after))
      (gemini-companion-lookup--eglot 'eglot--signal-textDocument/didClose)
      (gemini-companion-lookup--eglot 'eglot--signal-textDocument/didOpen))))

(defun gemini-companion-lookup--error-requests (path)
  "Return the requests for the errors in the file PATH.
Return nil if this buffer has no server, or one that does not support any."
  (when (gemini-companion-lookup--server (current-buffer))
    (let ((commands (gemini-companion-lookup--eglot
                     'eglot-server-capable :executeCommandProvider :commands)))
      (cond
       ((or (gemini-companion-lookup--eglot 'eglot-server-capable :diagnosticProvider)
            ;; Pyright publishes a version with errors of the text before, and does
            ;; not offer the request to clients that do not announce it.
            (seq-intersection commands '("pyright.createtypestub"
                                         "basedpyright.createtypestub")))
        `((:textDocument/diagnostic
           :textDocument (:uri ,(gemini-companion-lookup--uri path)))))
       ;; The server of TypeScript publishes errors bit by bit.
       ((seq-contains-p commands "typescript.tsserverRequest")
        (mapcar (lambda (command)
                  `(:workspace/executeCommand
                    :command "typescript.tsserverRequest"
                    :arguments [,command (:file ,path)]))
                '("syntacticDiagnosticsSync" "semanticDiagnosticsSync")))))))

(defun gemini-companion-lookup--request-errors (file done)
  "Request the errors in FILE of the server of this buffer, for DONE.
Return nil if the server does not support that."
  (when-let* ((requests (gemini-companion-lookup--error-requests file)))
    (gemini-companion-lookup--request
     (gemini-companion-lookup--server (current-buffer)) requests
     (lambda (results)
       (unless (assq 'error results)
         (funcall
          done
          (cl-loop
           for result in results
           append (gemini-companion-lookup--errors (plist-get result :items))
           append (cl-loop for found across (plist-get result :body)
                           when (equal "error" (plist-get found :category))
                           collect (list (map-nested-elt found '(:start :line))
                                         (plist-get found :text)
                                         "typescript")))))))
    t))

(defun gemini-companion-lookup--errors (diagnostics)
  (cl-loop for diagnostic across diagnostics
           ;; If it names no severity, the client decides.
           when (and (memq (plist-get diagnostic :severity) '(nil 1))
                     ;; The end of a list, not an error.
                     (not (equal "fatal_too_many_errors"
                                 (plist-get diagnostic :code))))
           collect (list (1+ (map-nested-elt diagnostic '(:range :start :line)))
                         (plist-get diagnostic :message)
                         (plist-get diagnostic :source))))

(defun gemini-companion-lookup--notified (server method &rest params)
  "Notice the notification METHOD of the language SERVER with PARAMS.
Called by jsonrpc for each notification."
  (gemini-companion-server-log-guarded 'errors
    (save-match-data
      (pcase method
        ('textDocument/publishDiagnostics
         (gemini-companion-lookup--published server params))
        ('$/progress
         (let ((work (cons server (plist-get params :token))))
           (pcase (map-nested-elt params '(:value :kind))
             ("begin" (push work gemini-companion-lookup--busy))
             ("end" (setq gemini-companion-lookup--busy
                          (delete work gemini-companion-lookup--busy))))))))))

(defun gemini-companion-lookup--published (server params)
  "Record the diagnostics of a file that SERVER has published in PARAMS.
A report counts only if it is about the text that was sent last."
  (pcase-let* (((map :uri :version :diagnostics) params)
               (errors (gemini-companion-lookup--errors diagnostics))
               (file (gemini-companion-text-true-name
                      (gemini-companion-lookup--path uri))))
    (if-let* ((file)
              (buffer (gemini-companion-names-buffer file)))
        (with-current-buffer buffer
          (when (and (eq server (gemini-companion-lookup--server buffer))
                     ;; Eglot opens a file with the version 0, which some
                     ;; servers leave out.
                     (equal gemini-companion-lookup--sent
                            (cons (or version 0) (buffer-chars-modified-tick)))
                     (or version errors
                         (null gemini-companion-lookup--last-report)
                         (car gemini-companion-lookup--last-report)))
            (unless (eql (buffer-chars-modified-tick)
                         (car gemini-companion-lookup--last-report))
              (gemini-companion-lookup--forget-others file))
            (setq gemini-companion-lookup--last-report
                  (list (buffer-chars-modified-tick) errors version))))
      (dolist (known gemini-companion-lookup--known)
        (when (and version (equal file (caar known)) (eql version (nth 2 known))
                   ;; A server may report none when the file is closed.
                   (or errors (null (nth 1 known))))
          (setf (nth 1 known) (list errors)))))))

(defun gemini-companion-lookup--request-known (known)
  "Request the errors of KNOWN, whose text the server of this buffer has.
Return nil if the server does not support that."
  (setf (nth 2 known) t)
  (gemini-companion-lookup--request-errors
   (caar known) (lambda (errors) (setf (nth 1 known) (list errors)))))

(defun gemini-companion-lookup--current ()
  "Return a list of the errors of this buffer, or nil if they are not known."
  (cond ((assq (gemini-companion-lookup--server (current-buffer))
               gemini-companion-lookup--busy)
         nil)
        ((eql (car gemini-companion-lookup--last-report)
              (buffer-chars-modified-tick))
         (list (nth 1 gemini-companion-lookup--last-report)))
        ((not (gemini-companion-lookup--managed-p))
         (gemini-companion-lookup--checked-errors))))

;;;; Other files

(defun gemini-companion-lookup--find-others (check server)
  "Set the `names' of CHECK, and return the buffers of SERVER with one of them.
The buffer that visits the file is omitted."
  (let-alist check
    (when-let* ((server)
                (.before)
                (names (gemini-companion-code-changed-names .before .after)))
      (setf (alist-get 'names check) names)
      (seq-filter
       (lambda (buffer)
         (with-current-buffer buffer
           (and buffer-file-name
                (eq server (gemini-companion-lookup--server buffer))
                (gemini-companion-lookup--current)
                (let ((case-fold-search nil))
                  (string-match-p names (gemini-companion-text-of-buffer))))))
       (remq (gemini-companion-names-buffer .file) (buffer-list))))))

(defun gemini-companion-lookup--keep-reports ()
  "Remember the last report about each buffer, as a text is replaced.
A quick server reports about the next text before the check of it begins."
  (setq gemini-companion-lookup--earlier-reports
        (mapcar (lambda (buffer)
                  (cons buffer (buffer-local-value
                                'gemini-companion-lookup--last-report buffer)))
                (buffer-list))))

(defun gemini-companion-lookup--ask-others (check)
  "Make the server of CHECK report about the other buffers.
Request the errors if it supports that."
  (let-alist check
    ;; A server may check other files when a file is saved; clangd finds more in
    ;; those that include a header than have a changed name.
    (when (or .others (and .server (string-match-p "\\.h[^/.]*\\'" .file)))
      (jsonrpc-notify
       .server :textDocument/didSave
       `(:textDocument (:uri ,(gemini-companion-lookup--uri .file)))))
    (dolist (buffer .others)
      (with-current-buffer buffer
        (let ((tick (buffer-chars-modified-tick)))
          (when (gemini-companion-lookup--request-errors
                 (gemini-companion-text-true-name buffer-file-truename)
                 (lambda (errors)
                   (when (buffer-live-p buffer)
                     (with-current-buffer buffer
                       (setq gemini-companion-lookup--last-report
                             (list tick errors))))))
            ;; The server may have published a part of them.
            (setq gemini-companion-lookup--last-report
                  (alist-get buffer gemini-companion-lookup--earlier-reports))))))))

(defun gemini-companion-lookup--new-in-other (names buffer)
  "Return the new errors of BUFFER that have one of NAMES, a regexp, or nil.
They or their lines have it.  The value is a list of the file, their
number, and the first one."
  (with-current-buffer buffer
    (pcase-let ((`(,tick ,old . ,_)
                 (alist-get buffer gemini-companion-lookup--earlier-reports)))
      (when-let* ((file (gemini-companion-text-true-name buffer-file-name))
                  ((eql tick (buffer-chars-modified-tick)))
                  ((gemini-companion-lookup--shared-p file))
                  (now (gemini-companion-lookup--current))
                  (text (gemini-companion-text-of-buffer))
                  (new (seq-filter
                        (pcase-lambda (`((,_ ,error . ,_) ,_ ,line))
                          (string-match-p names (concat error "\n" line)))
                        (gemini-companion-code-new-errors
                         (car now) text (list old) text))))
        (list file (length new) (caar new))))))

;;;; Life

(cl-defmethod gemini-companion-part-findings ((_part (eql 'lookup)) _directory)
  "Return a finding if no program knows the errors of an open file."
  (unless (seq-some #'gemini-companion-lookup--checker (buffer-list))
    '((note "Nothing checks an open file, so there are no errors to send"
            "Start Eglot, Flymake or Flycheck in a file."))))

(defun gemini-companion-lookup--before-revert ()
  "Remember the errors of this buffer, or request them."
  (gemini-companion-server-log-guarded 'errors
    (when (and buffer-file-truename (not (buffer-modified-p))
               (<= (buffer-size) gemini-companion-lookup--largest))
      (let ((file (gemini-companion-text-true-name buffer-file-truename))
            (found (unless (memq (current-buffer)
                                 (alist-get 'others
                                            (car gemini-companion-lookup--checks)))
                     (gemini-companion-lookup--current))))
        (gemini-companion-lookup--keep-reports)
        (when (or found (gemini-companion-lookup--error-requests file))
          (gemini-companion-lookup--sync)
          (let ((known (gemini-companion-lookup--expect
                        file (gemini-companion-text-of-buffer))))
            (unless (gemini-companion-lookup--request-known known)
              (setf (nth 1 known) found))))))))

(defun gemini-companion-lookup--managed ()
  "End the check of this file, which Eglot has opened or closed."
  (unless (gemini-companion-lookup--managed-p)
    (setq gemini-companion-lookup--last-report '(nil nil 0)))
  (gemini-companion-lookup--end-of
   (gemini-companion-text-true-name buffer-file-truename)))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'lookup)))
  "Follow Eglot, Flymake and Flycheck."
  '((eglot-managed-mode-hook gemini-companion-lookup--managed)
    (flymake-diagnostic-functions gemini-companion-lookup--begins)
    (flycheck-before-syntax-check-hook gemini-companion-lookup--begins)
    (flycheck-after-syntax-check-hook gemini-companion-lookup--flycheck-ended)
    (before-revert-hook gemini-companion-lookup--before-revert)))

(defconst gemini-companion-lookup--advice
  '((eglot-handle-notification :after gemini-companion-lookup--notified)
    (jsonrpc-notify :before gemini-companion-lookup--note-sent))
  "Advice for functions of Eglot and jsonrpc, which may be loaded later.")

(cl-defmethod gemini-companion-part-start ((_part (eql 'lookup)))
  "Start keeping the errors of visited files."
  (dolist (advice gemini-companion-lookup--advice)
    (apply #'advice-add advice)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'lookup)))
  "End each check, and keep no errors."
  (mapc (lambda (check) (gemini-companion-lookup--end check nil))
        gemini-companion-lookup--checks)
  (pcase-dolist (`(,name ,_ ,function) gemini-companion-lookup--advice)
    (advice-remove name function))
  (setq gemini-companion-lookup--busy nil
        gemini-companion-lookup--known nil
        gemini-companion-lookup--earlier-reports nil)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (mapc #'kill-local-variable
            '(gemini-companion-lookup--begun
              gemini-companion-lookup--last-report
              gemini-companion-lookup--sent)))))

(provide 'gemini-companion-lookup)
;;; gemini-companion-lookup.el ends here
