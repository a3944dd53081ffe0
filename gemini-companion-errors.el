;;; gemini-companion-errors.el --- Errors that an edit has made  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Find the errors that are new in a file after a CLI has written it.  In case of
;; doubt, report none.
;;
;; For a file that no buffer visits, the language server of its project gets the
;; text after the edit, the text before it, and the text after it again: an error
;; is new if it is in both results for the text after the edit, and not in that
;; for the text before.  For a visited file, the errors before the edit are those
;; that Eglot, Flymake or Flycheck had when the buffer was reverted.
;;
;; Each request is sent once, and a timer waits for its result.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-code)
(require 'gemini-companion-events)
(require 'gemini-companion-name)
(require 'gemini-companion-share)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

(declare-function flycheck-buffer "ext:flycheck")
(declare-function flycheck-stop "ext:flycheck")
(declare-function flymake-start "flymake")
(declare-function jsonrpc-async-request "jsonrpc")
(declare-function jsonrpc-notify "jsonrpc")
(declare-function jsonrpc-running-p "jsonrpc")
(defvar flycheck-last-status-change)

;;;; State

(defvar gemini-companion-errors-bound 2.8
  "Seconds after which an unfinished check ends without a result.
The CLI waits for it.")

(defconst gemini-companion-errors--interval 0.05
  "Seconds between tests of what the running check waits for.")

(defconst gemini-companion-errors--quiet 0.2
  "Seconds without another report that make the last one final.")

(defconst gemini-companion-errors--early 0.8
  "Quiet seconds after the answer to a request, if the report came before.
The request was sent after the text; see
`gemini-companion-errors--ask-behind'.")

(defconst gemini-companion-errors--old 1.5
  "Quiet seconds after which the errors before a revert are final.")

(defconst gemini-companion-errors--steady 3
  "Seconds after which the errors of a written file are known.")

(defconst gemini-companion-errors--largest (* 1024 1024)
  "Size in bytes of a text above which it is not checked.")

(defconst gemini-companion-errors--sendable (* 128 1024)
  "Size in bytes above which the text of a file not visited is not checked.
A pipe holds 64 KB, and Emacs waits until the server has read the rest.")

(defconst gemini-companion-errors--lines 10
  "Maximum number of errors to report.")

(defconst gemini-companion-errors--columns 200
  "Maximum length of the line of an error.")

(cl-defstruct (gemini-companion-errors--document
               (:constructor gemini-companion-errors--document-make)
               (:copier nil))
  "A text that a language server has, and the errors that it reported.
SERVER knows the text by the true name PATH; VERSION is nil if Eglot
sent it.  ERRORS were reported at TIME, when the buffer had TICK.  EXACT
is non-nil if that report is known to be complete: it named a version,
or answered one of REQUESTS, an alist of the methods and parameters by
which SERVER can be asked for errors.  SEEN is the time when SERVER
answered a request that was sent after the text, or nil."
  server path version requests seen time tick exact errors)

(cl-defstruct (gemini-companion-errors--check
               (:constructor gemini-companion-errors--check-make)
               (:copier nil))
  "A check of a file that was written and had the text BEFORE, now AFTER.
CALLBACK is called at the end of the check, or by TIMEOUT, a timer.
STEP is called with the check again and again; it begins the check, or
tests what that waits for.  DOCUMENT is what the check opened, or nil."
  file before after callback timeout document
  (step #'gemini-companion-errors--dispatch))

(defvar gemini-companion-errors--checks nil
  "The checks, of which only the first one runs.
The texts that another check sends would disturb it.")

(defvar gemini-companion-errors--timer nil
  "The timer that runs the first check, or nil.")

(defvar gemini-companion-errors--busy
  (make-hash-table :test #'eq :weakness 'key)
  "Tokens of the work in progress of each language server.")

(defvar-local gemini-companion-errors--opened nil
  "The document of this buffer, as Eglot opened it.")

(defvar-local gemini-companion-errors--settled nil
  "Result of the last check, a list (TICK ERRORS . EXACT), or nil.")

(defvar-local gemini-companion-errors--known nil
  "The errors before this buffer was reverted, or nil.
A list (HASH ERRORS . EXACT), with the hash of that text.")

(dolist (variable '(gemini-companion-errors--opened
                    gemini-companion-errors--settled
                    gemini-companion-errors--known))
  (put variable 'permanent-local t))

;;;; New errors

;; An error is a list of its LINE, TEXT and SOURCE.

(defun gemini-companion-errors--key (error lines)
  "Return a key (KIND . CONTENT), equal for two versions of the same ERROR.
KIND is its text without numbers, as they may be line numbers, and
CONTENT is its line in LINES, a vector."
  (let ((line (1- (car error))))
    (cons (replace-regexp-in-string "[0-9]+" "0" (nth 1 error))
          (if (< -1 line (length lines))
              (string-trim (aref lines line))
            ""))))

(defun gemini-companion-errors--split (text)
  "Return the lines of TEXT, a vector."
  (vconcat (split-string text "\r\n\\|[\n\r]")))

(defun gemini-companion-errors--new (errors text old-errors old-text exact)
  "Return those of ERRORS, in TEXT, that are new.
OLD-ERRORS are the errors of OLD-TEXT, the earlier text.  An error that
has only moved is not new, nor is one that may be a changed form of an
earlier error.  Only errors in new lines are new if some errors are
gone, as they may have hidden others; or if EXACT is nil, as OLD-ERRORS
may be incomplete."
  (let ((lines (gemini-companion-errors--split text))
        (old-lines (gemini-companion-errors--split old-text))
        (counts (make-hash-table :test #'equal))
        (old (make-hash-table :test #'equal))
        new gone)
    (dolist (error old-errors)
      (cl-incf (gethash (gemini-companion-errors--key error old-lines)
                        counts 0)))
    (dolist (error errors)
      (when (> 0 (cl-decf (gethash (gemini-companion-errors--key error lines)
                                   counts 0)))
        (push error new)))
    (maphash (lambda (key count)
               (when (< 0 count)
                 (push (car key) gone)))
             counts)
    (when (or gone (not exact))
      (seq-do (lambda (line) (puthash (string-trim line) t old)) old-lines))
    (seq-remove (lambda (error)
                  (pcase-let ((`(,kind . ,content)
                               (gemini-companion-errors--key error lines)))
                    (or (member kind gone)
                        (gethash content old))))
                (nreverse new))))

(defun gemini-companion-errors--text (errors name)
  "Return the text for the model about the new ERRORS of the file NAME."
  (let* ((errors (seq-sort-by #'car #'< errors))
         (count (length errors))
         (more (- count gemini-companion-errors--lines)))
    (string-join
     (append
      (list (format "Emacs sees %d new error%s in %s \
(a later edit may already fix %s):"
                    count (if (= 1 count) "" "s") name
                    (if (= 1 count) "it" "them")))
      (mapcar #'gemini-companion-errors--line
              (seq-take errors gemini-companion-errors--lines))
      (when (< 0 more)
        (list (format "... %d more" more))))
     "\n")))

(defun gemini-companion-errors--line (error)
  "Return the line for the model about ERROR."
  (pcase-let ((`(,line ,text ,source) error))
    (truncate-string-to-width
     (gemini-companion-name-escaped
      (format "%d: error: %s%s" line
              (string-trim
               (replace-regexp-in-string "[ \t\n\r\f\u00A0]+" " " text))
              (if source (format " [%s]" source) "")))
     gemini-companion-errors--columns nil nil "...")))

;;;; Language servers

(defun gemini-companion-errors--diagnostics (diagnostics)
  "Return the errors among the DIAGNOSTICS of a language server."
  (mapcar (lambda (diagnostic)
            (list (1+ (plist-get (plist-get (plist-get diagnostic :range)
                                            :start)
                                 :line))
                  (plist-get diagnostic :message)
                  (plist-get diagnostic :source)))
          (seq-filter (lambda (diagnostic)
                        (eql 1 (plist-get diagnostic :severity)))
                      diagnostics)))

(defun gemini-companion-errors--notified (server method &rest params)
  "Record what SERVER reports by METHOD with PARAMS."
  (gemini-companion-events-guarded 'errors
    (save-match-data
      (pcase method
        ('textDocument/publishDiagnostics
         (gemini-companion-errors--published server params))
        ('$/progress
         (let ((token (plist-get params :token))
               (tokens (gethash server gemini-companion-errors--busy)))
           (pcase (plist-get (plist-get params :value) :kind)
             ("begin" (push token tokens))
             ("end" (setq tokens (delete token tokens))))
           (puthash server tokens gemini-companion-errors--busy)))))))

(defun gemini-companion-errors-busy-p (file)
  "Return non-nil if the language server of FILE reports work in progress."
  (when-let* ((buffer (or (find-buffer-visiting file)
                          (gemini-companion-code-neighbor file)))
              (server (gemini-companion-code-server buffer)))
    (and (gethash server gemini-companion-errors--busy) t)))

(defun gemini-companion-errors--published (server params)
  "Record the errors that SERVER has published with PARAMS."
  (when-let* ((path (gemini-companion-code-path (plist-get params :uri)))
              (document (gemini-companion-errors--find server path)))
    (let ((version (plist-get params :version))
          (own (gemini-companion-errors--document-version document))
          (buffer (gemini-companion-code-buffer path)))
      (unless (or (gemini-companion-errors--document-requests document)
                  (and version own (not (eql version own))))
        (setf (gemini-companion-errors--document-exact document) version
              (gemini-companion-errors--document-time document)
              (float-time)
              (gemini-companion-errors--document-tick document)
              (and buffer (buffer-chars-modified-tick buffer))
              (gemini-companion-errors--document-errors document)
              (gemini-companion-errors--diagnostics
               (plist-get params :diagnostics)))))))

(defun gemini-companion-errors--find (server path)
  "Return the document that SERVER has by the name PATH, or nil."
  (let ((is-it (lambda (document)
                 (pcase document
                   ((cl-struct gemini-companion-errors--document
                               (server (pred (eq server)))
                               (path (pred (equal path))))
                    document)))))
    (or (seq-some (lambda (check)
                    (funcall is-it
                             (gemini-companion-errors--check-document check)))
                  gemini-companion-errors--checks)
        (when-let* ((buffer (gemini-companion-code-buffer path)))
          (with-current-buffer buffer
            (when (gemini-companion-code-managed-p)
              (or (funcall is-it gemini-companion-errors--opened)
                  (setq gemini-companion-errors--opened
                        (gemini-companion-errors--document-make
                         :server server :path path :seen 0)))))))))

(defun gemini-companion-errors--ask-behind (document)
  "Send a request to the server of DOCUMENT after its text.
Once it has answered, it has read the text."
  (let ((seen (lambda (&rest _)
                (unless (gemini-companion-errors--document-seen document)
                  (setf (gemini-companion-errors--document-seen document)
                        (float-time))))))
    (jsonrpc-async-request
     (gemini-companion-errors--document-server document)
     :textDocument/documentSymbol
     (list :textDocument
           (list :uri (gemini-companion-code-uri
                       (gemini-companion-errors--document-path document))))
     :success-fn seen :error-fn seen :timeout-fn #'ignore)))

(defun gemini-companion-errors--requests (path)
  "Return the requests for the errors in the file PATH.
Return nil if the server of this buffer does not support any."
  (let ((capable (if (fboundp 'eglot-server-capable)
                     'eglot-server-capable
                   ;; Its name before Emacs 30.
                   'eglot--server-capable)))
    (cond
     ((funcall capable :diagnosticProvider)
      `((:textDocument/diagnostic
         :textDocument (:uri ,(gemini-companion-code-uri path)))))
     ;; This server publishes errors bit by bit.
     ((seq-contains-p (funcall capable :executeCommandProvider :commands)
                      "typescript.tsserverRequest")
      (mapcar (lambda (command)
                `(:workspace/executeCommand
                  :command "typescript.tsserverRequest"
                  :arguments [,command (:file ,path)]))
              '("syntacticDiagnosticsSync" "semanticDiagnosticsSync"))))))

(defun gemini-companion-errors--answer (result)
  "Return the errors in RESULT, the answer to a request for them."
  (or (gemini-companion-errors--diagnostics (plist-get result :items))
      (mapcar (lambda (found)
                (list (plist-get (plist-get found :start) :line)
                      (plist-get found :text)
                      "typescript"))
              (seq-filter (lambda (found)
                            (equal "error" (plist-get found :category)))
                          (plist-get result :body)))))

(defun gemini-companion-errors--ask (document)
  "Request the errors of DOCUMENT from its server, which has its text."
  (let* ((requests (gemini-companion-errors--document-requests document))
         (left (length requests))
         (errors nil))
    (if (null requests)
        (gemini-companion-errors--ask-behind document)
      (pcase-dolist (`(,method . ,params) requests)
        (jsonrpc-async-request
         (gemini-companion-errors--document-server document) method params
         :success-fn
         (lambda (result)
           (setq errors (append (gemini-companion-errors--answer result)
                                errors))
           (when (zerop (cl-decf left))
             (setf (gemini-companion-errors--document-errors document) errors
                   (gemini-companion-errors--document-exact document) t
                   (gemini-companion-errors--document-time document)
                   (float-time))))
         :error-fn #'ignore :timeout-fn #'ignore)))))

(defun gemini-companion-errors--final (document quiet)
  "Return (ERRORS . EXACT) of DOCUMENT if the errors are final, or nil.
They are final after QUIET seconds without another report."
  (pcase-let (((cl-struct gemini-companion-errors--document
                          server version requests seen time exact errors)
               document))
    (and time
         (null (gethash server gemini-companion-errors--busy))
         (or (and exact (or version requests))
             (and seen
                  (< (if (< time seen)
                         (+ seen (max quiet gemini-companion-errors--early))
                       (+ time quiet))
                     (float-time))))
         (cons errors (and exact t)))))

;;;; Files that are not visited

(defun gemini-companion-errors--show (check text then &optional language)
  "Send TEXT to the server of CHECK, and call THEN with its errors.
LANGUAGE is that of the first text."
  (pcase-let* (((cl-struct gemini-companion-errors--document
                           server path version requests)
                (gemini-companion-errors--check-document check))
               (version (1+ version))
               (document (gemini-companion-errors--document-make
                          :server server :path path :version version
                          :requests requests)))
    (setf (gemini-companion-errors--check-document check) document
          (gemini-companion-errors--check-step check)
          (lambda (_check)
            (pcase (gemini-companion-errors--final
                    document gemini-companion-errors--quiet)
              (`(,errors . ,exact) (funcall then errors exact)))))
    (if (= 1 version)
        (gemini-companion-code-open path server text language)
      (jsonrpc-notify
       server :textDocument/didChange
       (list :textDocument (list :uri (gemini-companion-code-uri path)
                                 :version version)
             :contentChanges (vector (list :text text)))))
    (gemini-companion-errors--ask document)))

(defun gemini-companion-errors--compare (check language)
  "Send the texts of CHECK, in LANGUAGE, to its server.
The text after the edit is sent again at the end, because a change in
another file may have caused an error in the meantime."
  (pcase-let (((cl-struct gemini-companion-errors--check before after) check))
    (gemini-companion-errors--show
     check after
     (lambda (errors _exact)
       (if (or (null errors) (null before))
           (gemini-companion-errors--report check errors)
         (gemini-companion-errors--show
          check before
          (lambda (previous exact)
            (let ((new (gemini-companion-errors--new errors after
                                                     previous before exact)))
              (if (null new)
                  (gemini-companion-errors--report check nil)
                (gemini-companion-errors--show
                 check after
                 (lambda (again _exact)
                   (gemini-companion-errors--report
                    check (seq-intersection new again))))))))))
     language)))

(defun gemini-companion-errors--begin (check neighbor)
  "Begin CHECK of a file that is not visited, by the server of NEIGHBOR.
Wait until the server has answered a request: sending a text to one that
does not read would block Emacs."
  (with-current-buffer neighbor
    (let* ((file (gemini-companion-errors--check-file check))
           (server (gemini-companion-code-server neighbor))
           (document (gemini-companion-errors--document-make
                      :server server :path file :version 0
                      :requests (gemini-companion-errors--requests file)))
           (language (gemini-companion-code-language))
           (reads (lambda (&rest _)
                    (when (memq check gemini-companion-errors--checks)
                      (setf (gemini-companion-errors--check-document check)
                            document)
                      (condition-case nil
                          (gemini-companion-errors--compare check language)
                        (error (gemini-companion-errors--end check nil)))))))
      (setf (gemini-companion-errors--check-step check) #'ignore)
      ;; The server must answer that it does not know this method.
      (jsonrpc-async-request server :$/gemini-companion nil
                             :success-fn reads :error-fn reads
                             :timeout-fn #'ignore))))

(defun gemini-companion-errors--visiting ()
  "End the check of the file of this buffer, which Eglot may open now."
  (when (and gemini-companion-errors--checks buffer-file-truename)
    (gemini-companion-errors--end-of (expand-file-name buffer-file-truename))))

;;;; Files that are visited

(defun gemini-companion-errors--hash (text)
  "Return the hash of a buffer with TEXT as it is in a file."
  (with-temp-buffer
    (insert (gemini-companion-text-plain text))
    (buffer-hash)))

(defun gemini-companion-errors--current (quiet)
  "Return (ERRORS . EXACT) of this buffer, or nil if they are unknown.
They are known after QUIET seconds without another report."
  (cond ((gemini-companion-code-managed-p)
         (let ((document gemini-companion-errors--opened))
           (and document
                (eq (gemini-companion-code-server (current-buffer))
                    (gemini-companion-errors--document-server document))
                (eql (buffer-chars-modified-tick)
                     (gemini-companion-errors--document-tick document))
                (gemini-companion-errors--final document quiet))))
        ((pcase (gemini-companion-code-checker (current-buffer))
           ('flymake-mode (and (gemini-companion-code-backends)
                               (gemini-companion-code-reported-p)))
           ('flycheck-mode (eq 'finished flycheck-last-status-change)))
         (cons (gemini-companion-errors--checked) t))))

(defun gemini-companion-errors-awaited-p ()
  "Return non-nil if a server has yet to report on the text of this buffer.
Return nil if that is not known because Eglot managed the buffer
before `gemini-companion-errors-start'."
  (and (gemini-companion-code-managed-p)
       gemini-companion-errors--opened
       (not (gemini-companion-errors--current
             gemini-companion-errors--quiet))))

(defun gemini-companion-errors--checked ()
  "Return the errors of this buffer that Flymake or Flycheck has."
  (mapcar (pcase-lambda (`(,line ,_ ,text))
            (list line text nil))
          (seq-filter (lambda (diagnostic)
                        (equal "error" (nth 1 diagnostic)))
                      (gemini-companion-code-buffer-diagnostics (current-buffer)))))

(defun gemini-companion-errors--flycheck-begins ()
  "Record the text that Flycheck is about to check."
  (setq gemini-companion-errors--settled
        (list (buffer-chars-modified-tick))))

(defun gemini-companion-errors--flycheck-ended ()
  "Keep the errors of this buffer, which Flycheck clears before a revert."
  (gemini-companion-events-guarded 'errors
    (when (eql (car gemini-companion-errors--settled)
               (buffer-chars-modified-tick))
      (setcdr gemini-companion-errors--settled
              (gemini-companion-errors--current 0)))))

(defun gemini-companion-errors--before-revert ()
  "Keep the errors of this buffer, if they are known."
  (gemini-companion-events-guarded 'errors
    (setq gemini-companion-errors--known
          (and buffer-file-name
               (not (buffer-modified-p))
               (when-let* ((errors
                            (cond ((eql (car gemini-companion-errors--settled)
                                        (buffer-chars-modified-tick))
                                   (cdr gemini-companion-errors--settled))
                                  ((gemini-companion-errors--steady-p)
                                   (gemini-companion-errors--current
                                    gemini-companion-errors--old)))))
                 (cons (buffer-hash) errors))))))

(defun gemini-companion-errors--steady-p ()
  "Return non-nil if the file of this buffer was written long ago."
  (let ((time (visited-file-modtime)))
    (and (consp time)
         (< gemini-companion-errors--steady (float-time (time-since time))))))

(defun gemini-companion-errors--after-revert ()
  "Find out when the server has seen the text of this buffer.
Eglot has closed and opened it."
  (gemini-companion-events-guarded 'errors
    (when (and gemini-companion-errors--opened
               (gemini-companion-code-managed-p))
      (let ((document (gemini-companion-errors--document-make
                       :server (gemini-companion-code-server (current-buffer))
                       :path (gemini-companion-errors--document-path
                              gemini-companion-errors--opened))))
        (setq gemini-companion-errors--opened document)
        (gemini-companion-errors--ask-behind document)))))

(defun gemini-companion-errors--request ()
  "Request the errors of this buffer.
Return the document that will have them.  Return nil if they will be in
the document that Eglot opened, or in the buffer itself."
  (if (gemini-companion-code-managed-p)
      (pcase gemini-companion-errors--opened
        ((cl-struct gemini-companion-errors--document server path)
         (when-let* ((requests (gemini-companion-errors--requests path))
                     (document (gemini-companion-errors--document-make
                                :server server :path path
                                :requests requests)))
           (gemini-companion-errors--ask document)
           document)))
    (ignore
     (pcase (gemini-companion-code-checker (current-buffer))
       ('flymake-mode (flymake-start))
       ('flycheck-mode (flycheck-stop)
                       (flycheck-buffer))))))

(defun gemini-companion-errors--watch (check buffer)
  "Begin CHECK of a file that BUFFER visits."
  (with-current-buffer buffer
    (pcase-let (((cl-struct gemini-companion-errors--check before after) check)
                (known gemini-companion-errors--known))
      (if (not (and (equal (buffer-hash) (gemini-companion-errors--hash after))
                    (or (null before)
                        (equal (car known)
                               (gemini-companion-errors--hash before)))))
          (gemini-companion-errors--end check nil)
        (setf (gemini-companion-errors--check-step check)
              (apply-partially
               #'gemini-companion-errors--await
               buffer (buffer-chars-modified-tick)
               (gemini-companion-errors--request)
               (lambda (errors)
                 (if before
                     (gemini-companion-errors--new
                      errors after (cadr known) before (cddr known))
                   errors))))))))

(defun gemini-companion-errors--await (buffer tick pulled new check)
  "End CHECK once the errors of BUFFER are known, or if it has not TICK.
They are those of the document PULLED if it is non-nil; NEW returns
those of them that are new."
  (with-current-buffer buffer
    (if (not (eql tick (buffer-chars-modified-tick)))
        (gemini-companion-errors--end check nil)
      (pcase (if pulled
                 (gemini-companion-errors--final pulled 0)
               (gemini-companion-errors--current
                gemini-companion-errors--quiet))
        (`(,errors . ,exact)
         (setq gemini-companion-errors--settled `(,tick ,errors . ,exact))
         (gemini-companion-errors--report check (funcall new errors)))))))

;;;; Checks

(defun gemini-companion-errors-after-edit (file before after callback)
  "Call CALLBACK with a text about the errors that an edit of FILE made.
FILE is an absolute name; a CLI has changed its text from BEFORE,
nil if there was no such file, to AFTER, and the buffers that visit
it were reverted.  The text is for the model, nil if there are no
new errors, or if they are not known within three seconds."
  (let ((check (gemini-companion-errors--check-make
                :file (or (gemini-companion-text-true-name file) file)
                :before before :after after :callback callback)))
    (gemini-companion-errors--end-of (gemini-companion-errors--check-file check))
    (setf (gemini-companion-errors--check-timeout check)
          (run-at-time gemini-companion-errors-bound nil
                       #'gemini-companion-errors--end check nil))
    (setq gemini-companion-errors--checks
          (append gemini-companion-errors--checks (list check)))
    (unless gemini-companion-errors--timer
      (setq gemini-companion-errors--timer
            (run-at-time 0 gemini-companion-errors--interval
                         #'gemini-companion-errors--step)))))

(defun gemini-companion-errors--step ()
  "Continue the first check."
  (when-let* ((check (car gemini-companion-errors--checks)))
    (condition-case nil
        (save-match-data
          (funcall (gemini-companion-errors--check-step check) check))
      ;; A server has ended, or a buffer was killed.
      (error (gemini-companion-errors--end check nil)))))

(defun gemini-companion-errors--dispatch (check)
  "Begin CHECK, according to its file."
  (pcase-let* (((cl-struct gemini-companion-errors--check file before after)
                check)
               (buffer (and (not (gemini-companion-text-problem file))
                            (find-buffer-visiting file)))
               (neighbor (and (null buffer)
                              (gemini-companion-code-neighbor file))))
    (cond ((not (and (or buffer neighbor)
                     (file-exists-p file)
                     (<= (max (string-bytes (or before ""))
                              (string-bytes after))
                         (if buffer
                             gemini-companion-errors--largest
                           gemini-companion-errors--sendable))
                     (gemini-companion-errors--shared-p file)))
           (gemini-companion-errors--end check nil))
          (buffer (gemini-companion-errors--watch check buffer))
          (t (gemini-companion-errors--begin check neighbor)))))

(defun gemini-companion-errors--shared-p (file)
  "Return non-nil if errors of FILE may be shared."
  (and (not gemini-companion-paused)
       (not (gemini-companion-code-hidden-p file))
       (or gemini-companion-share-outside-projects
           (cadr (gemini-companion-name-place file)))))

(defun gemini-companion-errors--report (check errors)
  "End CHECK with its new ERRORS."
  (gemini-companion-errors--end
   check
   (when errors
     (pcase-let ((`(,file ,root)
                  (gemini-companion-name-place
                   (gemini-companion-errors--check-file check))))
       (gemini-companion-errors--text
        errors (gemini-companion-name-escaped
                (if root (file-relative-name file root) file)))))))

(defun gemini-companion-errors--end-of (file)
  "End the check of FILE, a true name, if there is one."
  (dolist (check gemini-companion-errors--checks)
    (when (equal file (gemini-companion-errors--check-file check))
      (gemini-companion-errors--end check nil))))

(defun gemini-companion-errors--end (check text)
  "End CHECK with TEXT for the model, or nil."
  (when (memq check gemini-companion-errors--checks)
    (setq gemini-companion-errors--checks
          (delq check gemini-companion-errors--checks))
    (cancel-timer (gemini-companion-errors--check-timeout check))
    (unless gemini-companion-errors--checks
      (cancel-timer gemini-companion-errors--timer)
      (setq gemini-companion-errors--timer nil))
    (gemini-companion-events-guarded 'errors
      (pcase (gemini-companion-errors--check-document check)
        ((cl-struct gemini-companion-errors--document server path)
         (when (jsonrpc-running-p server)
           (gemini-companion-code-close path server)))))
    (gemini-companion-events-guarded 'errors
      (funcall (gemini-companion-errors--check-callback check) text))))

;;;; Life

(defun gemini-companion-errors--attach ()
  "Listen to the language servers of Eglot, if that is loaded."
  (when (fboundp 'eglot-handle-notification)
    (advice-add 'eglot-handle-notification
                :after #'gemini-companion-errors--notified)))

(defun gemini-companion-errors--managed ()
  "Await the errors of this buffer, which Eglot manages from now on."
  (gemini-companion-errors--attach)
  (gemini-companion-events-guarded 'errors
    (when-let* (((gemini-companion-code-managed-p))
                (buffer-file-truename)
                (server (gemini-companion-code-server (current-buffer))))
      (setq gemini-companion-errors--opened
            (gemini-companion-errors--document-make
             :server server :path (expand-file-name buffer-file-truename)
             :seen 0)))))

(defconst gemini-companion-errors--hooks
  '((change-major-mode-after-body-hook . gemini-companion-errors--visiting)
    (eglot-managed-mode-hook . gemini-companion-errors--managed)
    (flycheck-before-syntax-check-hook
     . gemini-companion-errors--flycheck-begins)
    (flycheck-after-syntax-check-hook . gemini-companion-errors--flycheck-ended)
    (before-revert-hook . gemini-companion-errors--before-revert)
    (after-revert-hook . gemini-companion-errors--after-revert))
  "Functions that are on hooks while edits are checked.")

(defun gemini-companion-errors-start ()
  "Start keeping the errors of visited files."
  (gemini-companion-errors--attach)
  (pcase-dolist (`(,hook . ,function) gemini-companion-errors--hooks)
    (add-hook hook function)))

(defun gemini-companion-errors-stop ()
  "End each check, and keep no errors."
  (mapc (lambda (check) (gemini-companion-errors--end check nil))
        gemini-companion-errors--checks)
  (pcase-dolist (`(,hook . ,function) gemini-companion-errors--hooks)
    (remove-hook hook function))
  (advice-remove 'eglot-handle-notification #'gemini-companion-errors--notified)
  (clrhash gemini-companion-errors--busy)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (mapc #'kill-local-variable '(gemini-companion-code-flycheck-tick
                                    gemini-companion-errors--opened
                                    gemini-companion-errors--settled
                                    gemini-companion-errors--known)))))

(provide 'gemini-companion-errors)
;;; gemini-companion-errors.el ends here
