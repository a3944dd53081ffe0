;;; gemini-companion-eglot.el --- Language servers that Eglot runs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Which language server knows a file, how to ask that server without blocking
;; Emacs, and what its answers mean.  A file that no buffer visits is opened in the
;; server of a neighbor: a buffer of the same language below the same root.
;;
;; The position of a request is zero-based, as in the protocol; a location here is
;; a list (FILE LINE), an error a list (LINE TEXT SOURCE), each with a line from 1.

;;; Code:

(require 'gemini-companion-names)
(require 'gemini-companion-text)
(require 'jsonrpc)
(require 'map)

;;;; State

(defconst gemini-companion-eglot-sendable (* 128 1024)
  "Size in bytes above which the text of a file is not sent to a server.
A pipe holds 64 KB; even after the server has answered a request, Emacs
waits until it has read the rest.")

(defvar gemini-companion-eglot-version 0
  "The version of the last text that was sent, of any file.
A late report about an earlier text cannot be taken for a later one.")

;;;; Servers

(defun gemini-companion-eglot-call (name &rest args)
  "Call the function NAME of Eglot with ARGS; return nil if it has none.
Before Emacs 30, some of the names had two hyphens."
  (let ((old (string-replace "eglot-" "eglot--" (symbol-name name))))
    (apply (or (seq-find #'fboundp (list name (intern old))) #'ignore) args)))

(defun gemini-companion-eglot-managed-p ()
  "Return non-nil if Eglot manages the current buffer."
  (gemini-companion-eglot-call 'eglot-managed-p))

(defun gemini-companion-eglot-server (buffer)
  "Return the running language server of BUFFER, or nil."
  (with-current-buffer buffer
    (when-let* (((gemini-companion-eglot-managed-p))
                (server (gemini-companion-eglot-call 'eglot-current-server))
                ((jsonrpc-running-p server)))
      server)))

(defun gemini-companion-eglot-uri (file)
  "Return the URI by which Eglot names FILE, an absolute name."
  (gemini-companion-eglot-call 'eglot-path-to-uri file))

(defun gemini-companion-eglot-path (uri)
  "Return the name of the file with URI, or nil if URI names no file."
  (when (string-prefix-p "file://" uri)
    (decode-coding-string
     (url-unhex-string (string-remove-prefix "file://" uri)) 'utf-8)))

(defun gemini-companion-eglot-units (buffer)
  "Return the function by which the server of BUFFER counts columns.
It returns the number of units of a text: characters, bytes in UTF-8 or,
unless the server has chosen otherwise, UTF-16 code units."
  (with-current-buffer buffer
    (pcase (gemini-companion-eglot-call 'eglot-server-capable :positionEncoding)
      ("utf-32" #'length)
      ("utf-8" #'string-bytes)
      (_ #'gemini-companion-text-units))))

(defun gemini-companion-eglot-language (file)
  "Return the extension of FILE, or \"c\" for all those of C and C++.
A header of C++ may be named as one of C."
  (replace-regexp-in-string "\\`[ch]\\(?:[ch]\\|pp\\|xx\\|\\+\\+\\)?\\'" "c"
                            (or (file-name-extension file) "")))

(defun gemini-companion-eglot-root (buffer)
  "Return the root of the language server of BUFFER, or nil without a server."
  (when-let* ((server (gemini-companion-eglot-server buffer))
              (folders (gemini-companion-eglot-call
                        'eglot-workspace-folders server)))
    (gemini-companion-eglot-path (plist-get (aref folders 0) :uri))))

(defun gemini-companion-eglot-neighbor (file)
  "Return a buffer with the language server of FILE, or nil.
It visits a local file of the same language, and FILE is below the root
of its server; if there are several such roots, take the innermost."
  (let ((language (gemini-companion-eglot-language file))
        (best nil)
        (innermost ""))
    (dolist (buffer (buffer-list) best)
      (let ((other (buffer-file-name buffer)))
        (when-let* ((other)
                    ((not (file-remote-p other)))
                    ((equal language (gemini-companion-eglot-language other)))
                    (root (gemini-companion-eglot-root buffer))
                    ((gemini-companion-text-in-directory-p file root))
                    ((< (length innermost) (length root))))
          (setq best buffer
                innermost root))))))

;;;; Requests

(cl-defstruct (gemini-companion-eglot--batch (:noinline t))
  "Requests that were sent together.
WAITING is the number of those without a result, RESULTS a list of the
results in the order of the requests, and THEN the function to call with
that list once WAITING is 0."
  waiting results then)

(defun gemini-companion-eglot--answered (batch index result)
  "Record RESULT of the request at INDEX of BATCH; the last one ends BATCH."
  (setf (nth index (gemini-companion-eglot--batch-results batch)) result)
  (when (zerop (cl-decf (gemini-companion-eglot--batch-waiting batch)))
    (funcall (gemini-companion-eglot--batch-then batch)
             (gemini-companion-eglot--batch-results batch))))

(defun gemini-companion-eglot-request (server requests then)
  "Send SERVER the REQUESTS, a list of (METHOD . PARAMS).
Call THEN with a list of the results in their order, once all are known.
One that failed is (error MESSAGE), with nil if it was not answered
within 14 seconds."
  (let ((batch (make-gemini-companion-eglot--batch
                :waiting (length requests)
                :results (make-list (length requests) nil)
                :then then)))
    (seq-do-indexed
     (pcase-lambda (`(,method . ,params) index)
       (let ((answered (apply-partially #'gemini-companion-eglot--answered
                                        batch index)))
         (jsonrpc-async-request
          server method params
          :success-fn answered
          :error-fn (lambda (problem)
                      (funcall answered
                               (list 'error (plist-get problem :message))))
          :timeout-fn (lambda () (funcall answered '(error nil)))
          :timeout 14)))
     requests)))

(defun gemini-companion-eglot-when-read (server send &optional fail)
  "Call SEND once SERVER has answered that it does not know a method.
Sending a text to a server that does not read would block Emacs.  If
SERVER does not answer in time, call FAIL instead, if non-nil."
  (gemini-companion-eglot-request
   server '((:$/gemini-companion))
   (lambda (results)
     (if (equal '(error nil) (car results))
         (when fail
           (funcall fail))
       (funcall send)))))

;;;; Questions of a server

(defvar gemini-companion-eglot--declining nil
  "The servers whose questions to the user are not asked.")

(defconst gemini-companion-eglot--advice
  '((eglot-handle-request :around gemini-companion-eglot--handle-request))
  "Advice for a function of Eglot, which may be loaded later.")

(defun gemini-companion-eglot-decline (server on)
  "Answer nothing to the questions of SERVER to the user, if ON is non-nil.
Else ask them again.  Eglot reads the answer in the minibuffer, in a process
filter, as when basedpyright is asked to rename to a keyword."
  (setq gemini-companion-eglot--declining
        (if on
            (cons server gemini-companion-eglot--declining)
          (remq server gemini-companion-eglot--declining)))
  (pcase-dolist (`(,name ,where ,function) gemini-companion-eglot--advice)
    (if gemini-companion-eglot--declining
        (advice-add name where function)
      (advice-remove name function))))

(defun gemini-companion-eglot--handle-request (handle server method &rest params)
  "Call HANDLE with SERVER, METHOD and PARAMS, or return nil.
This is advice around `eglot-handle-request'."
  (unless (and (eq method 'window/showMessageRequest)
               (memq server gemini-companion-eglot--declining))
    (apply handle server method params)))

;;;; Texts

(defun gemini-companion-eglot-open (file server text neighbor)
  "Open FILE, a true name, with TEXT in SERVER; return the version of TEXT.
NEIGHBOR is a buffer of a file of the same language."
  (jsonrpc-notify
   server :textDocument/didOpen
   `(:textDocument
     ( :uri ,(gemini-companion-eglot-uri file)
       :version ,(cl-incf gemini-companion-eglot-version)
       :languageId ,(with-current-buffer neighbor
                      (plist-get (gemini-companion-eglot-call
                                  'eglot--TextDocumentItem)
                                 :languageId))
       :text ,text)))
  gemini-companion-eglot-version)

(defun gemini-companion-eglot-close (file server)
  "Close FILE, a true name, in SERVER, which `gemini-companion-eglot-open' opened."
  (jsonrpc-notify server :textDocument/didClose
                  `(:textDocument (:uri ,(gemini-companion-eglot-uri file)))))

(defun gemini-companion-eglot-changed (server files)
  "Tell SERVER that FILES, true names, were written; it may not watch them."
  (when (jsonrpc-running-p server)
    (jsonrpc-notify
     server :workspace/didChangeWatchedFiles
     `(:changes ,(vconcat (mapcar (lambda (file)
                                    `(:uri ,(gemini-companion-eglot-uri file)
                                      :type 2))
                                  files))))))

;; The private names of Eglot: it has no public ones for these.  Without them,
;; the errors in visited files are not known, and none are reported.
(defun gemini-companion-eglot-sync ()
  "Send the server the text of this buffer, if it does not have it yet.
Eglot itself waits until Emacs is idle."
  (when (gemini-companion-eglot-managed-p)
    ;; In a narrowed buffer, Eglot fails for a change elsewhere.
    (save-restriction
      (widen)
      (gemini-companion-eglot-call 'eglot--signal-textDocument/didChange))))

(defun gemini-companion-eglot-reopen (before after)
  "Open the file of this buffer again if BEFORE and AFTER include other files.
Until clangd has read them, it reports what the previous ones make of the text."
  (cl-flet ((includes (text)
              (seq-filter (apply-partially #'string-match-p
                                           "\\`[ \t]*#[ \t]*include")
                          (gemini-companion-text-lines text))))
    (unless (equal (includes before) (includes after))
      (gemini-companion-eglot-call 'eglot--signal-textDocument/didClose)
      (gemini-companion-eglot-call 'eglot--signal-textDocument/didOpen))))

;;;; Answers

(defun gemini-companion-eglot-locations (result)
  "Return RESULT, locations, as a list of (FILE LINE).
Signal an error if RESULT is an error."
  (when (eq 'error (car-safe result))
    (user-error "The language server failed: %s"
                (or (cadr result) "no answer in time")))
  (delete-dups
   (mapcar (lambda (location)
             (let ((range (or (plist-get location :targetSelectionRange)
                              (plist-get location :range))))
               (list (gemini-companion-eglot-path
                      (or (plist-get location :targetUri)
                          (plist-get location :uri)))
                     (1+ (plist-get (plist-get range :start) :line)))))
           (if (keywordp (car-safe result))
               (list result)
             (append result nil)))))

;; Both Eglots announce `documentChanges' only, so no server may send the creation
;; of a file or an annotated edit.
(defun gemini-companion-eglot-changes (result)
  "Return RESULT, a WorkspaceEdit, as a list of (FILE EDIT...).
FILE is an absolute name, each EDIT a plist of the protocol; a file without
an edit is left out.  Signal a `user-error' if RESULT is an error, or would
create, rename or delete a file."
  (when (eq 'error (car-safe result))
    (user-error "The language server failed: %s"
                (or (cadr result) "no answer in time")))
  (let ((documents
         (append (plist-get result :documentChanges) nil))
        (changes nil))
    (dolist (document documents)
      (when (plist-get document :kind)
        (user-error "The language server would create, rename or delete files"))
      (push (cons (map-nested-elt document '(:textDocument :uri))
                  (append (plist-get document :edits) nil))
            changes))
    (unless documents
      (cl-loop for (uri edits) on (plist-get result :changes) by #'cddr
               do (push (cons (substring (symbol-name uri) 1)
                              (append edits nil))
                        changes)))
    (cl-loop for (uri . edits) in (nreverse changes)
             when edits
             collect (cons (or (gemini-companion-eglot-path uri)
                               (user-error "The language server would change \
what is not a file"))
                           edits))))

(defun gemini-companion-eglot-edited (text edits units)
  "Return TEXT after EDITS of the protocol, plists.
Their columns are counted by UNITS, of `gemini-companion-eglot-units'.
Signal a `user-error' if they overlap."
  (with-temp-buffer
    (insert text)
    (let ((ranges
           (mapcar (lambda (edit)
                     (let ((range (plist-get edit :range)))
                       (list (gemini-companion-eglot--position
                              (plist-get range :start) units)
                             (gemini-companion-eglot--position
                              (plist-get range :end) units)
                             (plist-get edit :newText))))
                   edits))
          (next (1+ (point-max))))
      (pcase-dolist (`(,beg ,end ,new) (seq-sort-by #'car #'> ranges))
        (unless (and (<= beg end) (<= end next)
                     ;; Two insertions at one place have no order.
                     (< beg next))
          (user-error "The edits of the language server overlap"))
        (setq next beg)
        (goto-char beg)
        (delete-region beg end)
        (insert new)))
    (buffer-string)))

(defun gemini-companion-eglot--position (place units)
  "Return the position of PLACE, a plist of the protocol, in this buffer.
For UNITS, see `gemini-companion-eglot-units'.  A column behind the end of
its line is that end."
  (goto-char (point-min))
  (if (< 0 (forward-line (plist-get place :line)))
      (point-max)
    (let* ((left (plist-get place :character))
           (beg (point))
           ;; A character takes one unit at least, and four at most.
           (end (min (line-end-position) (+ beg left))))
      (cl-loop for excess = (- (funcall units (buffer-substring-no-properties
                                               beg end))
                               left)
               while (< 0 excess)
               do (cl-decf end (max 1 (/ excess 4))))
      end)))

(defun gemini-companion-eglot-errors (diagnostics)
  "Return the errors among DIAGNOSTICS, a vector of plists of the protocol.
The value is a list of (LINE TEXT SOURCE).  LINE is a number from 1, TEXT
the message, and SOURCE the name of the program that found the error, such
as Pyright, or nil."
  (cl-loop for diagnostic across diagnostics
           ;; The client decides about a diagnostic without a severity.
           when (and (memq (plist-get diagnostic :severity) '(nil 1))
                     ;; The code ends the list of clangd; it is no error.
                     (not (equal "fatal_too_many_errors"
                                 (plist-get diagnostic :code))))
           collect (list (1+ (map-nested-elt diagnostic '(:range :start :line)))
                         (plist-get diagnostic :message)
                         (plist-get diagnostic :source))))

(defun gemini-companion-eglot-error-requests (path)
  "Return the requests for the errors in the file PATH.
Return nil if this buffer has no server, or one that does not support any."
  (when (gemini-companion-eglot-server (current-buffer))
    (let ((commands (gemini-companion-eglot-call
                     'eglot-server-capable :executeCommandProvider :commands)))
      (cond
       ((or (gemini-companion-eglot-call 'eglot-server-capable :diagnosticProvider)
            ;; Pyright publishes a version with errors of the text before, and does
            ;; not offer the request to clients that do not announce it.
            (seq-intersection commands '("pyright.createtypestub"
                                         "basedpyright.createtypestub")))
        `((:textDocument/diagnostic
           :textDocument (:uri ,(gemini-companion-eglot-uri path)))))
       ;; The server of TypeScript publishes errors bit by bit.
       ((seq-contains-p commands "typescript.tsserverRequest")
        (mapcar (lambda (command)
                  `(:workspace/executeCommand
                    :command "typescript.tsserverRequest"
                    :arguments [,command (:file ,path)]))
                '("syntacticDiagnosticsSync" "semanticDiagnosticsSync")))))))

(defun gemini-companion-eglot-request-errors (file done)
  "Request the errors in FILE of the server of this buffer, for DONE.
Return nil if the server does not support that."
  (when-let* ((requests (gemini-companion-eglot-error-requests file)))
    (gemini-companion-eglot-request
     (gemini-companion-eglot-server (current-buffer)) requests
     (lambda (results)
       (unless (assq 'error results)
         (funcall
          done
          (cl-loop
           for result in results
           append (gemini-companion-eglot-errors (plist-get result :items))
           append (cl-loop for found across (plist-get result :body)
                           when (equal "error" (plist-get found :category))
                           collect (list (map-nested-elt found '(:start :line))
                                         (plist-get found :text)
                                         "typescript")))))))
    t))

(provide 'gemini-companion-eglot)
;;; gemini-companion-eglot.el ends here
