;;; gemini-companion-eglot.el --- Language servers that Eglot runs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Find the language server of a file, send it requests without blocking Emacs, and
;; read its answers.  A file that no buffer visits is opened in the server of a
;; neighbor: a buffer of the same language below the same root.
;;
;; In a request, lines begin at 0, as in the protocol.  In a location, a list
;; (FILE LINE), and an error, a list (LINE TEXT SOURCE), they begin at 1.

;;; Code:

(require 'gemini-companion-names)
(require 'gemini-companion-text)
(require 'jsonrpc)
(require 'map)

;;;; State

(defconst gemini-companion-eglot-sendable (* 128 1024)
  "Size in bytes above which the text of a file is not sent to a server.
A pipe holds 64 KB; Emacs waits until the server has read the rest, even
if the server has just answered a request.")

(defvar gemini-companion-eglot--version 0
  "The version of the last text that was sent, for all files together.
No two texts have the same version, so a late report is recognized.")

;;;; Servers

(defun gemini-companion-eglot--call (name &rest args)
  "Call the function NAME of Eglot with ARGS.
Return nil if Eglot has no such function.  Before Emacs 30, some names had two
hyphens."
  (let ((old (string-replace "eglot-" "eglot--" (symbol-name name))))
    (apply (or (seq-find #'fboundp (list name (intern old))) #'ignore) args)))

(defun gemini-companion-eglot-managed-p ()
  "Return non-nil if Eglot manages the current buffer."
  (gemini-companion-eglot--call 'eglot-managed-p))

(defun gemini-companion-eglot-server (buffer)
  "Return the running language server of BUFFER, or nil."
  (with-current-buffer buffer
    (when-let* (((gemini-companion-eglot-managed-p))
                (server (gemini-companion-eglot--call 'eglot-current-server))
                ((jsonrpc-running-p server)))
      server)))

(defun gemini-companion-eglot-uri (file)
  "Return the URI by which Eglot names FILE, an absolute name."
  (gemini-companion-eglot--call 'eglot-path-to-uri file))

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
    (pcase (gemini-companion-eglot--call 'eglot-server-capable :positionEncoding)
      ("utf-32" #'length)
      ("utf-8" #'string-bytes)
      (_ #'gemini-companion-text-units))))

(defun gemini-companion-eglot-language (file)
  "Return the extension of FILE, or \"c\" for all extensions of C and C++.
A header of C++ may have the extension of one of C."
  (replace-regexp-in-string "\\`[ch]\\(?:[ch]\\|pp\\|xx\\|\\+\\+\\)?\\'" "c"
                            (or (file-name-extension file) "")))

(defun gemini-companion-eglot-root (buffer)
  "Return the root of the language server of BUFFER, or nil without a server."
  (when-let* ((server (gemini-companion-eglot-server buffer))
              (folders (gemini-companion-eglot--call
                        'eglot-workspace-folders server)))
    (gemini-companion-eglot-path (plist-get (aref folders 0) :uri))))

(defun gemini-companion-eglot-neighbor (file)
  "Return a buffer with the language server of FILE, or nil.
The buffer visits a local file of the same language, and FILE is below the
root of its server, which is the innermost such root."
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
WAITING is the number of requests without a result.  RESULTS is the list of
results, in the order of the requests; once WAITING is 0, THEN is called with
that list."
  waiting results then)

(defun gemini-companion-eglot--answered (batch index result)
  "Record RESULT of the request at INDEX of BATCH; the last one ends BATCH."
  (setf (nth index (gemini-companion-eglot--batch-results batch)) result)
  (when (zerop (cl-decf (gemini-companion-eglot--batch-waiting batch)))
    (funcall (gemini-companion-eglot--batch-then batch)
             (gemini-companion-eglot--batch-results batch))))

(defun gemini-companion-eglot-request (server requests then)
  "Send SERVER the REQUESTS, a list of (METHOD . PARAMS).
Once all results are known, call THEN with the list of them, in the order of
REQUESTS.  The result of a failed request is (error MESSAGE), where MESSAGE is
nil if it was not answered within 14 seconds."
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
  "Call SEND once SERVER has answered a request, and so has read it.
Sending a text to a server that does not read would block Emacs.  The request
is for an unknown method.  If SERVER does not answer in time, call FAIL
instead, if non-nil."
  (gemini-companion-eglot-request
   server '((:$/gemini-companion))
   (lambda (results)
     (if (equal '(error nil) (car results))
         (when fail
           (funcall fail))
       (funcall send)))))

;;;; Server questions

(defvar gemini-companion-eglot--declining nil
  "The servers whose questions to the user are declined.")

(defconst gemini-companion-eglot--advice
  '((eglot-handle-request :around gemini-companion-eglot--handle-request))
  "Advice for a function of Eglot, which may be loaded later.")

(defun gemini-companion-eglot-decline (server on)
  "Decline the questions of SERVER to the user if ON is non-nil, or ask again.
Eglot would read the answer in the minibuffer, in a process filter; for
example, if basedpyright is asked to rename a symbol to a keyword."
  (setq gemini-companion-eglot--declining
        (if on
            (cons server gemini-companion-eglot--declining)
          (remq server gemini-companion-eglot--declining)))
  (pcase-dolist (`(,name ,where ,function) gemini-companion-eglot--advice)
    (if gemini-companion-eglot--declining
        (advice-add name where function)
      (advice-remove name function))))

(defun gemini-companion-eglot--handle-request (handle server method &rest params)
  "Call HANDLE with SERVER, METHOD and PARAMS, unless METHOD is declined.
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
       :version ,(cl-incf gemini-companion-eglot--version)
       :languageId ,(with-current-buffer neighbor
                      (plist-get (gemini-companion-eglot--call
                                  'eglot--TextDocumentItem)
                                 :languageId))
       :text ,text)))
  gemini-companion-eglot--version)

(defun gemini-companion-eglot-close (file server)
  "Close FILE, a true name, in SERVER.
It was opened by `gemini-companion-eglot-open'."
  (jsonrpc-notify server :textDocument/didClose
                  `(:textDocument (:uri ,(gemini-companion-eglot-uri file)))))

(defun gemini-companion-eglot-changed (server files)
  "Notify SERVER that FILES, true names, were written.
A server may not watch files itself."
  (when (jsonrpc-running-p server)
    (jsonrpc-notify
     server :workspace/didChangeWatchedFiles
     `(:changes ,(vconcat (mapcar (lambda (file)
                                    `(:uri ,(gemini-companion-eglot-uri file)
                                      :type 2))
                                  files))))))

;; The next two functions call private functions of Eglot, which has no public ones
;; for these.  Without them, no errors of visited files are reported.
(defun gemini-companion-eglot-sync ()
  "Send the server the text of this buffer, if it does not have it yet.
Eglot itself waits until Emacs is idle."
  (when (gemini-companion-eglot-managed-p)
    ;; In a narrowed buffer, Eglot fails for a change elsewhere.
    (save-restriction
      (widen)
      (gemini-companion-eglot--call 'eglot--signal-textDocument/didChange))))

(defun gemini-companion-eglot-reopen (before after)
  "Open the file of this buffer again if AFTER includes other files than BEFORE.
Otherwise, clangd may report errors from the files that BEFORE includes."
  (cl-flet ((includes (text)
              (seq-filter (apply-partially #'string-match-p
                                           "\\`[ \t]*#[ \t]*include")
                          (gemini-companion-text-lines text))))
    (unless (equal (includes before) (includes after))
      (gemini-companion-eglot--call 'eglot--signal-textDocument/didClose)
      (gemini-companion-eglot--call 'eglot--signal-textDocument/didOpen))))

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

;; The Eglot of Emacs and that of GNU ELPA announce only `documentChanges', so no server
;; may send the creation of a file or an annotated edit.
(defun gemini-companion-eglot-changes (result)
  "Return RESULT, a WorkspaceEdit, as a list of (FILE EDIT...).
FILE is an absolute name, each EDIT a plist of the protocol; a file without
an edit is left out.  Signal a `user-error' if RESULT is an error, or would
create, rename or delete a file."
  (when (eq 'error (car-safe result))
    (user-error (if (cadr result)
                    "The language server failed: %s; ask the user"
                  "The language server did not answer in time; ask again later")
                (cadr result)))
  (let ((documents
         (append (plist-get result :documentChanges) nil))
        (changes nil))
    (dolist (document documents)
      (when (plist-get document :kind)
        (user-error "The language server would create, rename or delete files; \
ask the user"))
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
something other than a file; ask the user"))
                           edits))))

(defun gemini-companion-eglot-edited (text edits units)
  "Return TEXT after EDITS, a list of TextEdit plists of the protocol.
UNITS is the unit of their columns, see `gemini-companion-eglot-units'.
Signal a `user-error' if EDITS overlap or start at the same position."
  (with-temp-buffer
    (insert text)
    (let ((ranges (gemini-companion-eglot--ranges edits units))
          (next (1+ (point-max))))
      (pcase-dolist (`(,beg ,end ,new) (seq-sort-by #'car #'> ranges))
        (unless (and (<= beg end) (<= end next)
                     ;; The protocol allows the same start for insertions, but no
                     ;; rename has two.
                     (< beg next))
          (user-error "The language server sent edits that overlap or start at the \
same position; ask the user"))
        (setq next beg)
        (goto-char beg)
        (delete-region beg end)
        (insert new)))
    (buffer-string)))

(defun gemini-companion-eglot--ranges (edits units)
  "Return where EDITS are in this buffer, a list of (BEG END NEW-TEXT).
For EDITS and UNITS, see `gemini-companion-eglot-edited'."
  (let ((places nil)
        (known (list 0 0 (point-min))))
    (dolist (edit edits)
      (let ((range (plist-get edit :range)))
        (push (plist-get range :start) places)
        (push (plist-get range :end) places)))
    ;; In order, as counting from the beginning for each of thousands of edits would
    ;; take minutes.
    (let ((positions (make-hash-table :test 'eq)))
      (dolist (place (sort places
                           (lambda (a b)
                             (pcase-let (((map (:line la) (:character ca)) a)
                                         ((map (:line lb) (:character cb)) b))
                               (or (< la lb) (and (= la lb) (< ca cb)))))))
        (setq known (gemini-companion-eglot--position place units known))
        (puthash place (nth 2 known) positions))
      (mapcar (lambda (edit)
                (let ((range (plist-get edit :range)))
                  (list (gethash (plist-get range :start) positions)
                        (gethash (plist-get range :end) positions)
                        (plist-get edit :newText))))
              edits))))

(defun gemini-companion-eglot--position (place units known)
  "Return (LINE COLUMN POSITION) of PLACE, a plist of the protocol, in this buffer.
KNOWN is the value for a place before it.  For UNITS, see
`gemini-companion-eglot-units'.  A column after the end of its line means the
end of the line."
  (pcase-let* (((map :line :character) place)
               (`(,known-line ,column ,position) known))
    (goto-char position)
    (when (< known-line line)
      (setq column 0)
      (when (< 0 (forward-line (- line known-line)))
        (goto-char (point-max))))
    (let* ((left (- character column))
           (beg (point))
           ;; A character takes one unit at least, and four at most.
           (end (progn (skip-chars-forward "^\n" (min (point-max) (+ beg left)))
                       (point)))
           (count (lambda ()
                    (funcall units (buffer-substring-no-properties beg end)))))
      (cl-loop for excess = (- (funcall count) left)
               while (< 0 excess)
               do (cl-decf end (max 1 (/ excess 4))))
      (list line (+ column (funcall count)) end))))

(defun gemini-companion-eglot-errors (diagnostics)
  "Return the errors among DIAGNOSTICS, a vector of plists of the protocol.
The value is a list of (LINE TEXT SOURCE).  LINE is a number from 1, TEXT
the message, and SOURCE the name of the program that found the error, such
as Pyright, or nil."
  (cl-loop for diagnostic across diagnostics
           ;; By the protocol, the client interprets a missing severity.
           when (and (memq (plist-get diagnostic :severity) '(nil 1))
                     ;; With this code, clangd ends its list; it is no error.
                     (not (equal "fatal_too_many_errors"
                                 (plist-get diagnostic :code))))
           collect (list (1+ (map-nested-elt diagnostic '(:range :start :line)))
                         (plist-get diagnostic :message)
                         (plist-get diagnostic :source))))

(defun gemini-companion-eglot-error-requests (path)
  "Return the requests for the errors in the file PATH.
Return nil if this buffer has no server, or one that does not support any."
  (when (gemini-companion-eglot-server (current-buffer))
    (let ((commands (gemini-companion-eglot--call
                     'eglot-server-capable :executeCommandProvider :commands)))
      (cond
       ((or (gemini-companion-eglot--call 'eglot-server-capable :diagnosticProvider)
            ;; Pyright publishes errors of the previous text with the new version.
            ;; It answers the request, but offers it only to clients that announce
            ;; support.
            (seq-intersection commands '("pyright.createtypestub"
                                         "basedpyright.createtypestub")))
        `((:textDocument/diagnostic
           :textDocument (:uri ,(gemini-companion-eglot-uri path)))))
       ;; The server of TypeScript publishes errors in several steps.
       ((seq-contains-p commands "typescript.tsserverRequest")
        (mapcar (lambda (command)
                  `(:workspace/executeCommand
                    :command "typescript.tsserverRequest"
                    :arguments [,command (:file ,path)]))
                '("syntacticDiagnosticsSync" "semanticDiagnosticsSync")))))))

(defun gemini-companion-eglot-request-errors (file done)
  "Request the errors in FILE from the server of this buffer.
Call DONE later with the list of them.  Return nil if the server does not
support that."
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
           append (cl-loop for diagnostic across (plist-get result :body)
                           when (equal "error" (plist-get diagnostic :category))
                           collect (list (map-nested-elt diagnostic
                                                         '(:start :line))
                                         (plist-get diagnostic :text)
                                         "typescript")))))))
    t))

(provide 'gemini-companion-eglot)
;;; gemini-companion-eglot.el ends here
