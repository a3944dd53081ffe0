;;; gemini-companion-code.el --- Answers about symbols and files  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Answers to the questions of a model about a symbol or a file: references,
;; definition, diagnostics.  They come from the language server that Eglot runs,
;; from Flymake and Flycheck, and for Lisp from this Emacs.
;;
;; A symbol is searched for by its name in a file, so point does not matter.
;; Nothing that the user sees changes: no file is visited, and nothing waits for a
;; server.  Long work is done in slices.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-privacy)
(require 'gemini-companion-roots)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)
(require 'url-util)

(declare-function eglot-current-server "eglot")
(declare-function eglot-managed-p "eglot")
(declare-function eglot-workspace-folders "eglot")
(declare-function flycheck-buffer "ext:flycheck")
(declare-function flycheck-error-filename "ext:flycheck" t t)
(declare-function flycheck-error-level "ext:flycheck" t t)
(declare-function flycheck-error-level-compilation-level "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck" t t)
(declare-function flycheck-error-message "ext:flycheck" t t)
(declare-function flycheck-stop "ext:flycheck")
(declare-function flymake-diagnostic-beg "flymake")
(declare-function flymake-diagnostic-text "flymake")
(declare-function flymake-diagnostic-type "flymake")
(declare-function flymake-diagnostics "flymake")
(declare-function flymake-reporting-backends "flymake")
(declare-function flymake-running-backends "flymake")
(declare-function jsonrpc-async-request "jsonrpc")
(declare-function jsonrpc-notify "jsonrpc")
(declare-function jsonrpc-running-p "jsonrpc")
(declare-function xref-backend-definitions "xref")
(declare-function xref-elisp-location-file "elisp-mode" t t)
(declare-function xref-elisp-location-symbol "elisp-mode" t t)
(declare-function xref-item-location "xref" t t)
(defvar eglot-server-programs)
(defvar flycheck-current-errors)
(defvar flycheck-last-status-change)
(defvar flymake-diagnostic-functions)
(defvar flymake-list-only-diagnostics)
(defvar flymake-timer)

(define-error 'gemini-companion-code-problem "Cannot answer")

;;;; Limits

(defconst gemini-companion-code--seconds-at-once 0.003
  "Seconds of work after which Emacs handles keys again.")

(defconst gemini-companion-code--most 100
  "Maximum number of places to return.")

(defconst gemini-companion-code--source-lines 30
  "Maximum number of lines of a definition to return.")

(defconst gemini-companion-code--columns 400
  "Maximum number of characters of a line to return.")

(defconst gemini-companion-code--largest (* 1024 1024)
  "Size in bytes above which the text of a file is not returned.")

(defconst gemini-companion-code--sendable (* 48 1024)
  "Size in bytes above which the text of a file is not sent to a server.
A pipe holds 64 KB; Emacs would wait until the server reads more.")

(defconst gemini-companion-code--seconds 14
  "Seconds to wait for a language server.")

(defun gemini-companion-code--fail (format &rest args)
  "Signal that a question cannot be answered, with FORMAT and ARGS."
  (signal 'gemini-companion-code-problem (list (apply #'format format args))))

(defmacro gemini-companion-code--silently (&rest body)
  "Evaluate BODY without a message and without changing the match data.
A timer or a filter must not change it."
  (declare (indent 0) (debug t))
  `(save-match-data
     (let ((inhibit-message t)
           (message-log-max nil))
       ,@body)))

(defmacro gemini-companion-code--guarded (answer &rest body)
  "Evaluate BODY silently; if it fails, call ANSWER with the `:problem'."
  (declare (indent 1) (debug t))
  (let ((problem (make-symbol "problem")))
    `(condition-case ,problem
         (gemini-companion-code--silently ,@body)
       (gemini-companion-code-problem
        (funcall ,answer (list :problem (cadr ,problem))))
       ;; The message of another error may contain text of a file.
       (error
        (funcall ,answer (list :problem (format "Emacs failed: %s"
                                                (car ,problem))))))))

;;;; Files

(defun gemini-companion-code-buffer (file)
  "Return the buffer that visits FILE, a true name, or nil."
  (let ((name (abbreviate-file-name file)))
    (seq-find (lambda (buffer)
                (equal name (buffer-local-value 'buffer-file-truename buffer)))
              (buffer-list))))

(defun gemini-companion-code-hidden-p (file)
  "Return non-nil if nothing of FILE, a true name, may be shared."
  (or (gemini-companion-privacy-name-hidden-p file)
      (when-let* ((buffer (gemini-companion-code-buffer file)))
        (gemini-companion-privacy-hidden-p buffer))))

(defun gemini-companion-code--shared-p (file)
  "Return non-nil if FILE, a true name, may be shared and is in a root."
  (and (not (gemini-companion-text-problem file))
       (not (gemini-companion-code-hidden-p file))
       (gemini-companion-roots-name file)))

(defun gemini-companion-code--true-name (file)
  "Return the true name of FILE, a file that may be shared.
Signal an error if FILE does not exist or may not be shared."
  (let ((name (and (not (gemini-companion-text-remote-p file))
                   (gemini-companion-text-true-name file))))
    (unless (and name (gemini-companion-code--shared-p name))
      (gemini-companion-code--fail "%s is not shared by Emacs" file))
    (unless (file-regular-p name)
      (gemini-companion-code--fail "There is no file %s" file))
    name))

(defmacro gemini-companion-code--with-text (file &rest body)
  "Evaluate BODY in a buffer with the text of FILE, a true name.
That is the buffer that visits it, which BODY must not change, or else
a temporary one.  BODY sees an empty buffer if the text is too large."
  (declare (indent 1) (debug t))
  `(gemini-companion-code--call-with-text ,file (lambda () ,@body)))

(defun gemini-companion-code--call-with-text (file function)
  "Call FUNCTION in a buffer with the text of FILE, a true name.
See `gemini-companion-code--with-text'."
  (let ((buffer (gemini-companion-code-buffer file))
        (large (gemini-companion-code--large-p file))
        (inhibit-field-text-motion t))
    (if (and buffer (not large))
        (with-current-buffer buffer
          (save-excursion
            (save-restriction
              (widen)
              (goto-char (point-min))
              (funcall function))))
      (with-temp-buffer
        (unless large
          (gemini-companion-text-fill file))
        (funcall function)))))

(defun gemini-companion-code--large-p (file)
  "Return non-nil if FILE, a true name, is too large to be read."
  (< gemini-companion-code--largest
     (if-let* ((buffer (gemini-companion-code-buffer file)))
         (buffer-size buffer)
       (or (file-attribute-size (file-attributes file)) 0))))

;;;; Symbols

(defun gemini-companion-code--find (file symbol line)
  "Return a list of LINE, COLUMN and a remark for SYMBOL in FILE.
They are those of the first whole word SYMBOL on LINE, else of the
nearest one within three lines, else of the first one in FILE.  COLUMN
is in UTF-16 code units.  The remark names the line if it is not LINE.
Signal an error if FILE does not have SYMBOL, or is too large."
  (when (gemini-companion-code--large-p file)
    (gemini-companion-code--fail "%s is too large; use grep_search" file))
  (gemini-companion-code--with-text file
    (let ((found (gemini-companion-code--occurrences file symbol)))
      (pcase-let*
          ((`(,at . ,column)
            (or (and line
                     (seq-find (lambda (place)
                                 (<= (abs (- (car place) line)) 3))
                               (seq-sort-by (lambda (place)
                                              (abs (- (car place) line)))
                                            #'< found)))
                (car found)
                (gemini-companion-code--fail
                 "The word %s is not in %s" symbol file))))
        (list at column
              (when (and line (/= line at))
                (format "Line %d does not have %s; taken from line %d."
                        line symbol at)))))))

(defun gemini-companion-code--occurrences (file symbol)
  "Return the places of SYMBOL in this buffer, with the text of FILE.
That is a list of (LINE . COLUMN), one for each line."
  (let ((case-fold-search nil)
        (constituents (if (string-suffix-p ".el" file)
                          "[[:alnum:]_*+!?<>=:/-]"
                        "[[:alnum:]_$]"))
        (line 1)
        (counted (point-min))
        places)
    (cl-flet ((inside-p (position)
                (and (< (point-min) position (point-max))
                     (string-match-p constituents
                                     (string (char-before position)))
                     (string-match-p constituents
                                     (string (char-after position))))))
      (while (search-forward symbol nil t)
        (let ((beginning (- (point) (length symbol))))
          (unless (or (inside-p beginning) (inside-p (point)))
            (setq line (+ line (count-lines counted (line-beginning-position)))
                  counted (line-beginning-position))
            (push (cons line (gemini-companion-code--units
                              (buffer-substring-no-properties
                               counted beginning)))
                  places)
            (forward-line)))))
    (nreverse places)))

(defun gemini-companion-code--units (text)
  "Return the number of UTF-16 code units of TEXT."
  (/ (length (encode-coding-string text 'utf-16le)) 2))

;;;; Slices

(defun gemini-companion-code--each (function list done &optional values)
  "Call FUNCTION with each element of LIST, then DONE with the values.
Emacs handles keys in between.  VALUES are those of the elements before,
the last one first."
  (gemini-companion-code--silently
    (if (null list)
        (funcall done (nreverse values))
      (let ((end (+ (float-time) gemini-companion-code--seconds-at-once)))
        (while (and list (< (float-time) end))
          (push (ignore-errors (funcall function (pop list))) values))
        ;; DONE may do as much work again.
        (run-at-time 0 nil #'gemini-companion-code--each
                     function list done values)))))

;;;; Language servers

(defun gemini-companion-code-managed-p ()
  "Return non-nil if Eglot manages this buffer."
  (and (fboundp 'eglot-managed-p) (eglot-managed-p)))

(defun gemini-companion-code-server (buffer)
  "Return the live language server of BUFFER, or nil."
  (with-current-buffer buffer
    (when-let* (((gemini-companion-code-managed-p))
                (server (and (fboundp 'eglot-current-server)
                             (eglot-current-server)))
                ((jsonrpc-running-p server)))
      server)))

(defconst gemini-companion-code--uri-characters
  (let ((allowed (copy-sequence url-path-allowed-chars)))
    (aset allowed ?: nil)
    allowed)
  "Characters that a URI has as they are, a vector.
A colon is not among them, as in the URIs of Eglot.")

(defun gemini-companion-code-uri (file)
  "Return the URI of FILE, a true name."
  (concat "file://"
          (url-hexify-string file gemini-companion-code--uri-characters)))

(defun gemini-companion-code-path (uri)
  "Return the name of the file with URI, or nil if URI names no file."
  (when (string-prefix-p "file://" uri)
    (decode-coding-string
     (url-unhex-string (string-remove-prefix "file://" uri)) 'utf-8)))

(defun gemini-companion-code-language ()
  "Return the language of this buffer as a language server knows it."
  (seq-some
   (lambda (modes)
     (seq-some
      (lambda (mode)
        (pcase-let ((`(,mode . ,plist) (ensure-list mode)))
          (and (symbolp mode)
               (provided-mode-derived-p major-mode mode)
               (or (plist-get plist :language-id)
                   (get mode 'eglot-language-id)
                   (replace-regexp-in-string "\\(?:-ts\\)?-mode\\'" ""
                                             (symbol-name mode))))))
      (if (or (symbolp modes) (keywordp (cadr modes)))
          (list modes)
        modes)))
   (mapcar #'car eglot-server-programs)))

(defun gemini-companion-code-neighbor (file)
  "Return a buffer whose language server is that of FILE, or nil.
It visits a file with the same extension, and FILE is below the root of
its server; if there are several such roots, take the innermost."
  (let ((extension (file-name-extension file))
        best)
    (dolist (buffer (buffer-list) (car best))
      (when-let* (extension
                  (other (buffer-file-name buffer))
                  ((not (file-remote-p other)))
                  ((equal extension (file-name-extension other)))
                  (server (gemini-companion-code-server buffer))
                  (root (gemini-companion-code--root server))
                  ((gemini-companion-text-in-directory-p file root))
                  ((< (length (cdr best)) (length root))))
        (setq best (cons buffer root))))))

(defun gemini-companion-code--root (server)
  "Return the root of the project of SERVER, which is local."
  (when (fboundp 'eglot-workspace-folders)
    (gemini-companion-code-path
     (plist-get (aref (eglot-workspace-folders server) 0) :uri))))

(defun gemini-companion-code--place (file)
  "Return a buffer of the language server of FILE, a true name.
It visits FILE, or else another file of that language.  Signal an
error if no server runs."
  (or (if-let* ((buffer (gemini-companion-code-buffer file)))
          (and (gemini-companion-code-server buffer) buffer)
        (gemini-companion-code-neighbor file))
      (gemini-companion-code--fail
       "No language server runs for this file; use grep_search")))

(defun gemini-companion-code--lookup (file symbol line requests answer then)
  "Ask the language server of FILE about SYMBOL, on LINE or near it.
REQUESTS is a list of (METHOD . PARAMS); the place of SYMBOL is added
to PARAMS.  If no buffer visits FILE, and the result of the last
request lacks that place, the server may have another text of FILE;
it is then opened there, and REQUESTS are sent again.  THEN is called
with the remark about that place and a list of the results in the
order of REQUESTS, with (error MESSAGE) for one that failed.  If THEN
signals an error, ANSWER is called with a plist that has it as
`:problem'."
  (pcase-let* ((buffer (gemini-companion-code--place file))
               (`(,at ,column ,remark)
                (gemini-companion-code--find file symbol line))
               (server (gemini-companion-code-server buffer))
               (ask (lambda (then)
                      (gemini-companion-code--requests
                       buffer server file at column requests
                       (lambda (results)
                         (gemini-companion-code--guarded answer
                           (funcall then results))))))
               (finish (apply-partially then remark)))
    (funcall
     ask
     (if (gemini-companion-code-buffer file)
         finish
       (lambda (results)
         (if (gemini-companion-code--includes-p (car (last results))
                                                file symbol at column)
             (funcall finish results)
           (let ((own (gemini-companion-code--open file buffer server)))
             (funcall ask (lambda (results)
                            ;; It may be visited meanwhile.
                            (when (and own
                                       (not (gemini-companion-code-buffer file)))
                              (gemini-companion-code-close file server))
                            (funcall finish results))))))))))

(defun gemini-companion-code--requests
    (buffer server file line column requests then)
  "Send SERVER, that of BUFFER, REQUESTS about LINE and COLUMN of FILE.
First send the changes in BUFFER that SERVER does not have yet.  Call
THEN with a list of the results."
  (let ((place (list :textDocument (list :uri (gemini-companion-code-uri file))
                     :position (list :line (1- line) :character column)))
        (results (make-vector (length requests) nil))
        (left (length requests)))
    (with-current-buffer buffer
      (seq-do-indexed
       (pcase-lambda (`(,method . ,params) index)
         (let ((done (lambda (result)
                       (aset results index result)
                       (when (zerop (cl-decf left))
                         (funcall then (append results nil))))))
           (jsonrpc-async-request
            server method (append place params)
            :success-fn done
            :error-fn (lambda (problem)
                        (funcall done
                                 (list 'error (plist-get problem :message))))
            :timeout-fn (lambda ()
                          (funcall done (list 'error "no answer in time")))
            :timeout gemini-companion-code--seconds
            ;; Another request with the same key would take its place.
            :deferred (make-symbol "question"))))
       requests))))

(defun gemini-companion-code--includes-p (result file symbol line column)
  "Return non-nil if RESULT includes SYMBOL on LINE of FILE, at COLUMN.
RESULT is a vector of locations, or of highlights in FILE."
  (let ((beginning (list :line (1- line) :character column))
        (end (list :line (1- line)
                   :character (+ column
                                 (gemini-companion-code--units symbol)))))
    (and (vectorp result)
         (seq-some
          (lambda (one)
            (let ((range (plist-get one :range))
                  (uri (plist-get one :uri)))
              (and (equal beginning (plist-get range :start))
                   (equal end (plist-get range :end))
                   (or (null uri)
                       (equal file (gemini-companion-code-path uri))))))
          result))))

(defun gemini-companion-code--open (file buffer server)
  "Send the text of FILE to SERVER unless it is visited.
BUFFER visits a file of the same language.  Return non-nil if the
text was sent.  Signal an error if it is too large."
  (unless (gemini-companion-code-buffer file)
    (let ((text (gemini-companion-code--with-text file (buffer-string))))
      (when (< gemini-companion-code--sendable (string-bytes text))
        (gemini-companion-code--fail "%s is too large to be sent to the \
language server; open it in Emacs, or use grep_search" file))
      (gemini-companion-code-open
       file server text
       (with-current-buffer buffer (gemini-companion-code-language)))
      t)))

(defun gemini-companion-code-open (file server text language)
  "Open FILE, a true name, in SERVER, with version 1 of TEXT in LANGUAGE."
  (jsonrpc-notify server :textDocument/didOpen
                  (list :textDocument
                        (list :uri (gemini-companion-code-uri file)
                              :version 1 :languageId language :text text))))

(defun gemini-companion-code-close (file server)
  "Close FILE, a true name, in SERVER."
  (jsonrpc-notify server :textDocument/didClose
                  (list :textDocument
                        (list :uri (gemini-companion-code-uri file)))))

(defun gemini-companion-code--places (result)
  "Return RESULT, locations, as a list of (FILE LINE).
Signal an error if RESULT is an error."
  (when (eq 'error (car-safe result))
    (gemini-companion-code--fail "The language server failed: %s"
                                 (cadr result)))
  (delete-dups
   (mapcar (lambda (location)
             (let ((range (or (plist-get location :targetSelectionRange)
                              (plist-get location :range))))
               (list (gemini-companion-code-path
                      (or (plist-get location :targetUri)
                          (plist-get location :uri)))
                     (1+ (plist-get (plist-get range :start) :line)))))
           (cond ((vectorp result) (append result nil))
                 ((keywordp (car-safe result)) (list result))
                 (t result)))))

;;;; References

(defun gemini-companion-code-references (file symbol line after answer)
  "Find the references to SYMBOL, which occurs in FILE, on LINE if non-nil.
Call ANSWER with a plist: `:total', their number; `:places', lists
of FILE, LINE and TEXT, without the first AFTER; `:taken', a remark or
nil; or `:problem', why there is no answer."
  (gemini-companion-code--guarded answer
    (gemini-companion-code--lookup
     (gemini-companion-code--true-name file) symbol line
     '((:textDocument/references :context (:includeDeclaration t)))
     answer
     (lambda (remark results)
       (let ((places (gemini-companion-code--places (car results))))
         (gemini-companion-code--shared
          (delete-dups (mapcar #'car places))
          (lambda (names)
            (let ((places (gemini-companion-code--renamed places names)))
              (gemini-companion-code--texts
               (seq-take (seq-drop places (or after 0))
                         gemini-companion-code--most)
               (lambda (found)
                 (funcall answer (list :total (length places) :places found
                                       :taken remark))))))))))))

(defun gemini-companion-code--renamed (places names)
  "Return PLACES with their NAMES, in order.
NAMES is a hash table; places without a name are omitted."
  (seq-sort-by
   #'car #'string<
   (seq-sort-by
    #'cadr #'<
    (delete-dups
     (delq nil
           (mapcar (pcase-lambda (`(,file ,line))
                     (when-let* ((name (gethash file names)))
                       (list name line)))
                   places))))))

(defun gemini-companion-code--shared (files then)
  "Call THEN with a hash table of the true names of FILES.
It has those that may be shared."
  (let ((names (make-hash-table :test #'equal)))
    (gemini-companion-code--each
     (lambda (file)
       (when-let* ((file)
                   (name (gemini-companion-text-true-name file))
                   ((gemini-companion-code--shared-p name)))
         (puthash file name names)))
     files
     (lambda (_) (funcall then names)))))

(defun gemini-companion-code--texts (places then)
  "Call THEN with PLACES, each with the text of its line."
  (gemini-companion-code--each
   (lambda (group)
     (gemini-companion-code--with-text (car group)
       (let ((at 1))
         (mapcar (pcase-lambda (`(,file ,line))
                   (forward-line (- line at))
                   (setq at line)
                   (list file line
                         (buffer-substring-no-properties
                          (point)
                          (min (line-end-position)
                               (+ (point) gemini-companion-code--columns)))))
                 (cdr group)))))
   (seq-group-by #'car places)
   (lambda (groups) (funcall then (apply #'append groups)))))

(defun gemini-companion-code-visible (files answer)
  "Call ANSWER with a plist: `:files', those of FILES that may be shared."
  (gemini-companion-code--shared
   files
   (lambda (names)
     (funcall answer
              (list :files (seq-filter (lambda (file) (gethash file names))
                                       files))))))

;;;; Definition

(defun gemini-companion-code-definition (file symbol line answer)
  "Find the definition of SYMBOL, which occurs in FILE, on LINE if non-nil.
Call ANSWER with a plist: `:places', lists of FILE and LINE;
`:documentation', with the signature, and `:source', strings or nil;
`:taken', a remark or nil; or `:problem', why there is no answer."
  (gemini-companion-code--guarded answer
    (let ((file (gemini-companion-code--true-name file)))
      (if (string-suffix-p ".el" file)
          (gemini-companion-code--elisp-definition symbol answer)
        (gemini-companion-code--lookup
         file symbol line
         '((:textDocument/definition) (:textDocument/hover)
           (:textDocument/documentHighlight))
         answer
         (pcase-lambda (remark `(,definition ,hover ,_))
           (gemini-companion-code--define
            symbol (gemini-companion-code--places definition)
            (gemini-companion-code--hover hover) remark answer)))))))

(defun gemini-companion-code--define (symbol places documentation remark answer)
  "Call ANSWER with the definition of SYMBOL at PLACES.
DOCUMENTATION and REMARK are strings or nil.  The answer has nothing
about a definition in a file that may not be shared, and only the place,
not the text, of a definition outside the roots."
  (let* ((places (delq nil
                       (mapcar (pcase-lambda (`(,file ,line))
                                 (when-let* ((name (gemini-companion-text-true-name
                                                    file)))
                                   (list name line)))
                               (seq-filter #'car places))))
         (open (seq-remove (lambda (place)
                             (gemini-companion-code-hidden-p (car place)))
                           places))
         (first (seq-find (lambda (place)
                            (gemini-companion-code--shared-p (car place)))
                          open)))
    (cond ((null places)
           (gemini-companion-code--fail "No definition of %s was found" symbol))
          ((null open)
           (gemini-companion-code--fail
            "The definition of %s is in a file that Emacs does not share"
            symbol)))
    (funcall answer
             (list :places open
                   ;; It may come from any of the places.
                   :documentation (and (length= open (length places))
                                       documentation)
                   :source (and first (gemini-companion-code--source first))
                   :taken remark))))

(defun gemini-companion-code--source (place)
  "Return the text of the definition at PLACE.
It includes the following lines that are empty or indented more than
its first one, and the line that closes it."
  (gemini-companion-code--with-text (car place)
    (forward-line (1- (cadr place)))
    (let ((beginning (point))
          (indentation (current-indentation))
          (left gemini-companion-code--source-lines))
      (forward-line)
      (while (and (< 1 (setq left (1- left)))
                  (not (eobp))
                  (or (looking-at-p "[ \t]*$")
                      (< indentation (current-indentation))))
        (forward-line))
      (when (looking-at-p "[ \t]*[])}]")
        (forward-line))
      (string-trim-right
       (buffer-substring-no-properties beginning (point))))))

(defun gemini-companion-code--hover (result)
  "Return the text in RESULT of a request for the hover, or nil."
  (unless (eq 'error (car-safe result))
    (let* ((contents (plist-get result :contents))
           (text (mapconcat (lambda (part)
                              (if (stringp part)
                                  part
                                (or (plist-get part :value) "")))
                            (cond ((vectorp contents) contents)
                                  (contents (list contents)))
                            "\n")))
      (setq text (string-trim
                  (replace-regexp-in-string "^```.*\n?" "" text)))
      (unless (string-empty-p text) text))))

(defun gemini-companion-code--elisp-definition (symbol answer)
  "Call ANSWER with the definition of the Lisp SYMBOL in this Emacs."
  (require 'elisp-mode)
  (require 'xref)
  (let ((places
         (delq nil
               (mapcar (lambda (item)
                         (gemini-companion-code--elisp-place
                          (xref-item-location item)))
                       (ignore-errors
                         (xref-backend-definitions 'elisp symbol))))))
    (gemini-companion-code--define
     symbol places
     (when-let* ((symbol (intern-soft symbol)))
       (ignore-errors
         (or (and (fboundp symbol) (documentation symbol t))
             (documentation-property symbol 'variable-documentation t))))
     nil answer)))

(defun gemini-companion-code--elisp-place (location)
  "Return LOCATION, of a Lisp symbol, as (FILE LINE), or nil."
  (let ((file (xref-elisp-location-file location))
        (symbol (xref-elisp-location-symbol location)))
    (when (and (stringp file)
               (setq file (replace-regexp-in-string "\\.elc\\'" ".el" file))
               (file-exists-p file))
      (list file
            (gemini-companion-code--with-text file
              (if (re-search-forward
                   (format "^[ \t]*(\\(?:[[:alnum:]-]*def[^ ]*\\) \
+(?'?%s\\_>" (regexp-quote (symbol-name (if (consp symbol) (car symbol) symbol))))
                   nil t)
                  (line-number-at-pos)
                1))))))

;;;; Diagnostics

(defconst gemini-companion-code--check-limit 3
  "Seconds to wait until the current text of a file has been checked.")

(defvar-local gemini-companion-code-flycheck-tick nil
  "Tick of the text that Flycheck was asked to check, or nil.")

(defun gemini-companion-code-diagnostics (file answer &optional awaited-p)
  "Call ANSWER with the diagnostics of FILE.
If FILE is nil, call it with the numbers of diagnostics of each file.
The argument is a plist: `:rows', lists of LINE and TEXT, or of FILE
and TEXT; or `:problem', why there is no answer.  AWAITED-P is called
in the buffer that visits FILE, and returns non-nil while a language
server is yet to report on its text; Flymake does not know that."
  (gemini-companion-code--guarded answer
    (if file
        (let ((file (gemini-companion-code--true-name file)))
          (gemini-companion-code--start-flycheck file)
          (gemini-companion-code--await-check
           file answer (or awaited-p #'ignore)
           (+ (float-time) gemini-companion-code--check-limit)))
      (gemini-companion-code--shared
       (gemini-companion-code--checked-files)
       (lambda (names)
         (funcall answer
                  (if (zerop (hash-table-count names))
                      '(:problem "Emacs checks no file that is shared; run \
the project's own checks")
                    (list :rows (gemini-companion-code--counts names)))))))))

(defun gemini-companion-code--start-flycheck (file)
  "Start a check by Flycheck of FILE unless its text has been checked.
Flycheck itself does so only when the user edits or saves it."
  (when-let* ((buffer (gemini-companion-code-buffer file))
              ((eq 'flycheck-mode (gemini-companion-code-checker buffer))))
    (with-current-buffer buffer
      (unless (gemini-companion-code--flycheck-p 'running 'finished)
        (flycheck-stop)
        (flycheck-buffer)
        (setq gemini-companion-code-flycheck-tick
              (buffer-chars-modified-tick))))))

(defun gemini-companion-code--flycheck-p (&rest states)
  "Return non-nil if Flycheck's check of this text is in one of STATES."
  (and (eql gemini-companion-code-flycheck-tick (buffer-chars-modified-tick))
       (memq flycheck-last-status-change states)))

(defun gemini-companion-code--await-check (file answer awaited-p end)
  "Call ANSWER with the diagnostics of FILE when its text has been checked.
Wait until END at most, which is a `float-time'.  For AWAITED-P, see
`gemini-companion-code-diagnostics'."
  (gemini-companion-code--guarded answer
    (let ((buffer (gemini-companion-code-buffer file)))
      (cond ((or (null buffer)
                 (and (gemini-companion-code--checked-p buffer)
                      (not (with-current-buffer buffer (funcall awaited-p)))))
             (funcall
              answer
              (list :rows (mapcar (pcase-lambda (`(,line ,severity ,text))
                                    (list line (concat severity ": " text)))
                                  (gemini-companion-code--sorted
                                   (gemini-companion-code--diagnostics file))))))
            ((< (float-time) end)
             (run-at-time 0.05 nil #'gemini-companion-code--await-check
                          file answer awaited-p end))
            (t
             (gemini-companion-code--fail
              "Emacs has not checked the current text of this file yet; \
ask again"))))))

(defun gemini-companion-code--checked-p (buffer)
  "Return non-nil unless Flymake or Flycheck is yet to check BUFFER.
Signal an error if it cannot."
  (with-current-buffer buffer
    (pcase (gemini-companion-code-checker buffer)
      ('flymake-mode
       (unless (gemini-companion-code-backends)
         (gemini-companion-code--fail-unchecked))
       (and (verify-visited-file-modtime)
            (not flymake-timer)
            (gemini-companion-code-reported-p)))
      ('flycheck-mode
       (when (gemini-companion-code--flycheck-p 'no-checker 'errored)
         (gemini-companion-code--fail-unchecked))
       (and (verify-visited-file-modtime)
            (gemini-companion-code--flycheck-p 'finished)))
      (_ t))))

(defun gemini-companion-code-backends ()
  "Return the running backends of Flymake that this buffer still has.
Flymake keeps that of a language server that has ended, without errors."
  (seq-intersection (flymake-running-backends)
                    (append flymake-diagnostic-functions
                            (default-value 'flymake-diagnostic-functions))))

(defun gemini-companion-code-reported-p ()
  "Return non-nil if all running backends of Flymake have reported."
  (null (seq-difference (flymake-running-backends)
                        (flymake-reporting-backends))))

(defun gemini-companion-code--checked-files ()
  "Return the names of files that may have diagnostics."
  (delete-dups
   (append (mapcar #'car (bound-and-true-p flymake-list-only-diagnostics))
           (delq nil (mapcar #'buffer-file-name
                             (seq-filter #'gemini-companion-code-checker
                                         (buffer-list)))))))

(defun gemini-companion-code-checker (buffer)
  "Return the mode for diagnostics in BUFFER, or nil."
  (seq-find (lambda (mode)
              (and (local-variable-p mode buffer)
                   (buffer-local-value mode buffer)))
            '(flymake-mode flycheck-mode)))

(defun gemini-companion-code--diagnostics (file)
  "Return the diagnostics of FILE, lists of LINE, SEVERITY and TEXT."
  (let ((buffer (gemini-companion-code-buffer file)))
    (if (and buffer (gemini-companion-code-checker buffer))
        (gemini-companion-code-buffer-diagnostics buffer)
      (let ((known (cdr (assoc file (bound-and-true-p
                                     flymake-list-only-diagnostics)))))
        ;; A server also reports none for a file that it does not check.
        (unless known
          (gemini-companion-code--fail-unchecked))
        (mapcar (lambda (diagnostic)
                  (gemini-companion-code--diagnostic
                   diagnostic
                   ;; Of a file without a buffer, it is (LINE . COLUMN).
                   (car (flymake-diagnostic-beg diagnostic))))
                known)))))

(defun gemini-companion-code--fail-unchecked ()
  "Signal that a file is not checked."
  (gemini-companion-code--fail
   "Emacs does not check this file; run the project's own checks"))

(defun gemini-companion-code-buffer-diagnostics (buffer)
  "Return the diagnostics that Flymake or Flycheck has in BUFFER.
They are lists of LINE, SEVERITY and TEXT."
  (with-current-buffer buffer
    (if (eq 'flycheck-mode (gemini-companion-code-checker buffer))
        (mapcar #'gemini-companion-code--flycheck-error
                (seq-filter #'gemini-companion-code--flycheck-own-p
                            flycheck-current-errors))
      (save-restriction
        (widen)
        (mapcar (lambda (diagnostic)
                  (gemini-companion-code--diagnostic
                   diagnostic
                   (line-number-at-pos (flymake-diagnostic-beg diagnostic))))
                (flymake-diagnostics))))))

(defun gemini-companion-code--flycheck-own-p (error)
  "Return non-nil if ERROR, of Flycheck, is in the file of this buffer.
Flycheck has those of other files, too, which may not be shared."
  (let ((file (flycheck-error-filename error)))
    (or (null file)
        (equal file buffer-file-name)
        (file-equal-p file buffer-file-name))))

(defun gemini-companion-code--flycheck-error (error)
  "Return ERROR, of Flycheck, as LINE, SEVERITY and TEXT."
  (list (flycheck-error-line error)
        ;; Other packages define levels.
        (pcase (flycheck-error-level-compilation-level
                (flycheck-error-level error))
          (2 "error")
          (1 "warning")
          (_ "note"))
        (string-replace "\n" " " (or (flycheck-error-message error) ""))))

(defun gemini-companion-code--diagnostic (diagnostic line)
  "Return DIAGNOSTIC of Flymake, on LINE, as LINE, SEVERITY and TEXT."
  (let* ((type (flymake-diagnostic-type diagnostic))
         (category (or (get type 'flymake-category) type)))
    (list line
          (pcase category
            ((or :error 'flymake-error) "error")
            ((or :warning 'flymake-warning) "warning")
            (_ "note"))
          (string-replace "\n" " " (flymake-diagnostic-text diagnostic)))))

(defun gemini-companion-code--sorted (diagnostics)
  "Return DIAGNOSTICS with the errors first, each kind by line."
  (seq-sort-by (lambda (one)
                 (seq-position '("error" "warning" "note") (nth 1 one)))
               #'<
               (seq-sort-by (lambda (one) (or (car one) 0)) #'< diagnostics)))

(defun gemini-companion-code--counts (names)
  "Return the numbers of the diagnostics of NAMES, a hash table.
The value has a list of FILE and TEXT for each file with diagnostics;
files with errors come first."
  (let (rows)
    (maphash
     (lambda (_ name)
       (let* ((severities (mapcar #'cadr
                                  (ignore-errors
                                    (gemini-companion-code--diagnostics name))))
              (errors (cl-count "error" severities :test #'equal))
              (warnings (cl-count "warning" severities :test #'equal)))
         (when (< 0 (+ errors warnings))
           (push (list errors warnings name) rows))))
     names)
    (mapcar (pcase-lambda (`(,errors ,warnings ,name))
              (list name (format "%d errors, %d warnings" errors warnings)))
            (seq-sort-by #'car #'>
                         (seq-sort-by (lambda (row) (nth 2 row))
                                      #'string< rows)))))

(provide 'gemini-companion-code)
;;; gemini-companion-code.el ends here
