;;; gemini-companion-errors.el --- Errors that an edit introduced  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; After a CLI has written an edit, Emacs reports to that CLI the new errors in the
;; file, and in other open files that use a name whose definition was changed.
;;
;; A report of errors is accepted only if it is about the text that was written: it
;; names the version of that text, it answers a request that was sent after that text,
;; or Flymake or Flycheck began to check that text.  If no buffer visits the file, the
;; texts before and after the edit are sent to the language server of its project.
;;
;; A *report* lists the errors in a buffer.  A *text* is one version of a file with its
;; errors.  A *check* compares the errors of two versions.  Checks wait in a
;; queue, since the texts that a check sends would disturb another check.

;;; Code:

(require 'flymake)
(require 'gemini-companion-code)
(require 'gemini-companion-context)
(require 'gemini-companion-eglot)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
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

;;;; State

(defconst gemini-companion-errors--largest (* 512 1024)
  "Maximum size, in bytes, of a text to check.")

(defvar gemini-companion-errors-timeout 2.6
  "Seconds after which an unfinished check ends without a result.
The CLI waits for it.")

(cl-defstruct (gemini-companion-errors--report
               (:noinline t)
               (:constructor gemini-companion-errors--report (tick errors version)))
  "The last report about the text of a buffer.
TICK is the `buffer-chars-modified-tick' of that text, or nil if the next
report may be about a file that was closed.  ERRORS is a list of
\(LINE TEXT SOURCE).  VERSION is the version that the report of a language
server names, or nil."
  tick errors version)

(cl-defstruct (gemini-companion-errors--text
               (:noinline t)
               (:constructor gemini-companion-errors--text (file content)))
  "A text that a file had, and its errors.
FILE is a true name, CONTENT the text.  FOUND is nil until the errors are
known, and then a list with one element, the list of errors: (nil) means that
there are no errors.  ASKED is nil until the errors were asked for; then it is
the version of CONTENT that a report must name, or t."
  file content found asked)

(cl-defstruct (gemini-companion-errors--check (:noinline t))
  "The search for the errors that one edit introduced.
FILE is a true name.  BEFORE and AFTER are its texts before and after the edit;
BEFORE is nil for a new file.  CALLBACK is called with the result, not later
than at END, a `float-time'.

STATE is `waiting' until the check is the first in the queue, `texts' during
the search for errors of FILE, and then `others' during the search for errors
of other files.

SOURCE is the buffer that visits FILE, or else another buffer of its language
server.  SERVER is that server, or nil if only Flymake or Flycheck checks.
VERSION is the version of the text of FILE that the check has sent, or nil.
OLD, which may be nil, and NEW are the `gemini-companion-errors--text's before
and after the edit.  LEFT lists those still to ask about, in order; one may
occur twice.  NAMES is a regexp for the names whose definitions were changed,
or nil, and OTHERS are the buffers that use one of them."
  file before after callback end (state 'waiting)
  source server version old new left names others)

(defvar gemini-companion-errors--checks nil
  "The queue of checks; only the first one runs.
The texts that a check sends would disturb another check.")

(defvar gemini-companion-errors--texts nil
  "The last eight texts, the newest first.
A change of another file drops all of them.")

(defvar gemini-companion-errors--earlier-reports nil
  "Alist of (BUFFER . REPORT), the last reports before a text was replaced.")

(defvar gemini-companion-errors--busy nil
  "Work in progress of the language servers, a list of (SERVER . TOKEN).")

(defvar-local gemini-companion-errors--begun nil
  "Tick of the text that Flymake or Flycheck last began to check.")

(defvar-local gemini-companion-errors--last-report nil
  "Last report about this buffer, or nil.")
;; A revert may turn on the major mode again.
(put 'gemini-companion-errors--last-report 'permanent-local t)

(defvar-local gemini-companion-errors--sent nil
  "Version and tick of the text that Eglot sent last, a cons.")

;;;; Flymake and Flycheck

(defun gemini-companion-errors-checker (buffer)
  "Return the mode for diagnostics in BUFFER, or nil."
  (with-current-buffer buffer
    (cond ((and flymake-mode
                ;; Backends other than Eglot count lines from the narrowing.
                (or (not (buffer-narrowed-p)) (gemini-companion-eglot-managed-p)))
           'flymake-mode)
          ((bound-and-true-p flycheck-mode) 'flycheck-mode))))

(defun gemini-companion-errors--begins (&optional report &rest _)
  "Record that Flymake or Flycheck begins to check this text.
The function is also a backend of Flymake; it calls REPORT with no errors."
  (setq gemini-companion-errors--begun (buffer-chars-modified-tick))
  (when report
    (funcall report nil)))

(defun gemini-companion-errors--flycheck-ended ()
  "Record the errors of this buffer, which Flycheck clears before a revert."
  (gemini-companion-log-guarded 'errors
    (when-let* ((result (gemini-companion-errors--checked)))
      (setq gemini-companion-errors--last-report
            (gemini-companion-errors--report
             gemini-companion-errors--begun (car result) nil)))))

(defun gemini-companion-errors--start-check ()
  "Start a check by Flymake or Flycheck, unless one has begun.
Otherwise a check may begin only when the buffer is displayed."
  (unless (eql gemini-companion-errors--begun (buffer-chars-modified-tick))
    (pcase (gemini-companion-errors-checker (current-buffer))
      ('flymake-mode (flymake-start)
                     ;; A buffer-local list of backends may lack ours.
                     (gemini-companion-errors--begins))
      ('flycheck-mode (flycheck-stop)
                      (flycheck-buffer)))))

(defun gemini-companion-errors-checkable-p ()
  "Return non-nil if Flymake or Flycheck can check the current buffer."
  (pcase (gemini-companion-errors-checker (current-buffer))
    ('flymake-mode
     ;; Flymake keeps the state of a language server that has ended.
     (remq #'gemini-companion-errors--begins
           (seq-intersection
            (flymake-running-backends)
            (append flymake-diagnostic-functions
                    (default-value 'flymake-diagnostic-functions)))))
    ('flycheck-mode
     (not (memq flycheck-last-status-change '(no-checker errored))))))

(defun gemini-companion-errors--checked ()
  "Return a list with one element, the errors of this text.
Flymake or Flycheck has found them.  Return nil if this text is not checked."
  (when (and (eql gemini-companion-errors--begun (buffer-chars-modified-tick))
             (gemini-companion-errors-checkable-p)
             (if flymake-mode
                 (null (seq-difference (flymake-running-backends)
                                       (flymake-reporting-backends)))
               (eq 'finished flycheck-last-status-change)))
    (list (cl-loop for (line severity text)
                   in (gemini-companion-errors-diagnostics)
                   when (equal severity "error")
                   collect (list line text nil)))))

(defun gemini-companion-errors-diagnostics ()
  "Return the diagnostics of Flymake or Flycheck in this buffer.
Each is a list of LINE, SEVERITY and TEXT."
  (if (eq 'flycheck-mode (gemini-companion-errors-checker (current-buffer)))
      (cl-loop
       for error in flycheck-current-errors
       for file = (flycheck-error-filename error)
       ;; Errors in other files are omitted: these may not be shared.
       when (or (null file) (file-equal-p file buffer-file-name))
       collect (gemini-companion-errors--row
                (flycheck-error-line error)
                ;; Levels of other packages map to those of Compile.
                (flycheck-error-level-compilation-level
                 (flycheck-error-level error))
                (or (flycheck-error-message error) "")))
    (save-restriction
      (widen)
      (mapcar #'gemini-companion-errors-of-flymake (flymake-diagnostics)))))

(defun gemini-companion-errors-of-flymake (diagnostic)
  "Return the row (LINE SEVERITY TEXT) of DIAGNOSTIC of Flymake."
  (let ((type (flymake-diagnostic-type diagnostic))
        (beginning (flymake-diagnostic-beg diagnostic)))
    (gemini-companion-errors--row
     ;; In a file without a buffer, the beginning is (LINE . COLUMN).
     (if (consp beginning) (car beginning) (line-number-at-pos beginning))
     (or (get type 'flymake-category) type)
     (flymake-diagnostic-text diagnostic))))

(defun gemini-companion-errors--row (line level text)
  "Return LINE, the name of LEVEL and TEXT in one line, a list.
LEVEL is one of Flymake, or a number of Flycheck.  For example,
  (3 \"error\" \"x is not defined\")"
  (list line
        (pcase level
          ((or 2 :error 'flymake-error) "error")
          ((or 1 :warning 'flymake-warning) "warning")
          (_ "note"))
        (string-replace "\n" " " text)))

;;;; Reports about buffers

(defun gemini-companion-errors--reported-p ()
  "Return non-nil if the last report is about the current text of this buffer."
  (and gemini-companion-errors--last-report
       (eql (gemini-companion-errors--report-tick
             gemini-companion-errors--last-report)
            (buffer-chars-modified-tick))))

(defun gemini-companion-errors-busy-p (server)
  "Return non-nil if the language SERVER has reported work that has not ended."
  (assq server gemini-companion-errors--busy))

(defun gemini-companion-errors--current ()
  "Return the errors of this buffer in a list, or nil if they are unknown.
The value has one element, a list of (LINE TEXT SOURCE): (nil) means that
there are no errors."
  (cond ((gemini-companion-errors-busy-p
          (gemini-companion-eglot-server (current-buffer)))
         nil)
        ((gemini-companion-errors--reported-p)
         (list (gemini-companion-errors--report-errors
                gemini-companion-errors--last-report)))
        ((not (gemini-companion-eglot-managed-p))
         (gemini-companion-errors--checked))))

(defun gemini-companion-errors-answerable-p ()
  "Return non-nil if the check of this text has ended or is impossible.
Start a check if none has begun."
  (gemini-companion-errors--start-check)
  (or (not (gemini-companion-errors-checkable-p))
      (and (verify-visited-file-modtime)
           (gemini-companion-errors--checked)
           ;; Flymake does not know whether a language server will report again.
           (or (not (gemini-companion-eglot-managed-p))
               (gemini-companion-errors--reported-p)
               ;; A server that names no versions never shows which text it has
               ;; reported about.
               (and gemini-companion-errors--last-report
                    (null (gemini-companion-errors--report-version
                           gemini-companion-errors--last-report)))))))

(defun gemini-companion-errors--keep-reports ()
  "Record the last report about each buffer, before a text is replaced.
A quick server may report about the new text before the check of it begins."
  (setq gemini-companion-errors--earlier-reports
        (mapcar (lambda (buffer)
                  (cons buffer (buffer-local-value
                                'gemini-companion-errors--last-report buffer)))
                (buffer-list))))

(defun gemini-companion-errors--record-sent (_server method params)
  "Record the version of the text of this buffer that Eglot is about to send.
METHOD and PARAMS are those of the notification.  This is advice before
`jsonrpc-notify'."
  (when-let* (((memq method '(:textDocument/didOpen :textDocument/didChange)))
              (document (plist-get params :textDocument))
              (file (gemini-companion-eglot-path (plist-get document :uri)))
              ((gemini-companion-names-visited-here-p file)))
    (when (eq method :textDocument/didOpen)
      (let ((last gemini-companion-errors--last-report))
        ;; The next report may be about the text before the file was closed.
        (when (or last gemini-companion-errors--checks)
          (setq gemini-companion-errors--last-report
                (gemini-companion-errors--report
                 nil nil
                 (if last (gemini-companion-errors--report-version last) 0)))))
      ;; Eglot takes over a file that a check has opened.
      (dolist (check gemini-companion-errors--checks)
        (when (and (equal file (gemini-companion-errors--check-file check))
                   (gemini-companion-errors--check-version check))
          (gemini-companion-errors--end check nil))))
    (setq gemini-companion-errors--sent
          (cons (plist-get document :version) (buffer-chars-modified-tick)))))

(defun gemini-companion-errors--notified (server method &rest params)
  "Follow the notification METHOD of SERVER with PARAMS, a plist.
This is advice after `eglot-handle-notification'."
  (gemini-companion-log-guarded 'errors
    (save-match-data
      (pcase method
        ('textDocument/publishDiagnostics
         (gemini-companion-errors--published server params))
        ('$/progress
         (let ((work (cons server (plist-get params :token))))
           (pcase (map-nested-elt params '(:value :kind))
             ("begin" (push work gemini-companion-errors--busy))
             ("end" (setq gemini-companion-errors--busy
                          (delete work gemini-companion-errors--busy))))))))))

(defun gemini-companion-errors--published (server params)
  "Record the diagnostics that SERVER has published, with PARAMS, a plist.
They are about a buffer, or else about a text that a check has sent."
  (pcase-let* (((map :uri :version :diagnostics) params)
               (errors (gemini-companion-eglot-errors diagnostics))
               (file (gemini-companion-text-true-name
                      (gemini-companion-eglot-path uri)))
               (buffer (and file (gemini-companion-names-buffer file))))
    (cond (buffer
           (with-current-buffer buffer
             (when (and (eq server (gemini-companion-eglot-server buffer))
                        (gemini-companion-errors--credible-p version errors))
               (unless (gemini-companion-errors--reported-p)
                 (gemini-companion-errors--drop-others file))
               (setq gemini-companion-errors--last-report
                     (gemini-companion-errors--report
                      (buffer-chars-modified-tick) errors version)))))
          (version
           (gemini-companion-errors--published-text file version errors)))))

(defun gemini-companion-errors--credible-p (version errors)
  "Return non-nil if a report is about the current text of this buffer.
VERSION is the version that the report names, or nil, and ERRORS are its
errors."
  (and
   ;; Eglot opens a file with the version 0, which some servers leave out.
   (equal gemini-companion-errors--sent
          (cons (or version 0) (buffer-chars-modified-tick)))
   ;; When a file is closed, a server may report that it has no errors.
   (or version
       errors
       (null gemini-companion-errors--last-report)
       (gemini-companion-errors--report-tick gemini-companion-errors--last-report))))

(defun gemini-companion-errors--published-text (file version errors)
  "Record ERRORS for the text of FILE that was sent with VERSION."
  (dolist (text gemini-companion-errors--texts)
    (when (and (equal file (gemini-companion-errors--text-file text))
               (eql version (gemini-companion-errors--text-asked text))
               ;; When a file is closed, a server may report that it has no errors.
               (or errors (null (gemini-companion-errors--text-found text))))
      (setf (gemini-companion-errors--text-found text) (list errors)))))

;;;; Texts with errors

(defun gemini-companion-errors--text-of (file content)
  "Return the text of FILE, a true name, with CONTENT, or nil if there is none."
  (seq-find (lambda (text)
              (and (equal file (gemini-companion-errors--text-file text))
                   (equal content (gemini-companion-errors--text-content text))))
            gemini-companion-errors--texts))

(defun gemini-companion-errors--expect (file content)
  "Record and return a new text of FILE, a true name, with CONTENT.
It replaces an equal text, whose errors may have changed since."
  (let ((text (gemini-companion-errors--text file content)))
    (setq gemini-companion-errors--texts
          (cons text
                (seq-take (delq (gemini-companion-errors--text-of file content)
                                gemini-companion-errors--texts)
                          7)))
    text))

(defun gemini-companion-errors--drop-others (file)
  "Drop the texts of all files but FILE, as its change may change their errors.
Keep texts whose errors are being requested."
  (setq gemini-companion-errors--texts
        (seq-filter (lambda (text)
                      (or (equal file (gemini-companion-errors--text-file text))
                          (null (gemini-companion-errors--text-found text))))
                    gemini-companion-errors--texts)))

(defun gemini-companion-errors--request (text)
  "Request the errors of TEXT from the language server of this buffer.
The server must have been sent TEXT.  Return nil if it takes no requests."
  (setf (gemini-companion-errors--text-asked text) t)
  (gemini-companion-eglot-request-errors
   (gemini-companion-errors--text-file text)
   (lambda (errors)
     (setf (gemini-companion-errors--text-found text) (list errors)))))

(defun gemini-companion-errors--ask-again (text)
  "Reset TEXT, so that a check asks about its errors again."
  (setf (gemini-companion-errors--text-found text) nil
        (gemini-companion-errors--text-asked text) nil))

;;;; Checks

(defun gemini-companion-errors-after-edit (answer file before after)
  "Find the errors that an edit of FILE introduced, and call ANSWER.
FILE is an absolute name.  A CLI has changed its text from BEFORE, nil for
a new file, to AFTER, and the buffers that visit it were reverted.

The argument of ANSWER is a plist: `:path', the true name of FILE; `:count',
the number of new errors; `:errors', at most ten of them, lists of LINE, TEXT
and SOURCE; and `:others', lists of another file, the number of its new
errors, and the first one.  It is nil if there are no new errors, or if the
check takes longer than `gemini-companion-errors-timeout'."
  (let ((file (or (gemini-companion-text-true-name file) file)))
    (gemini-companion-errors--drop-others file)
    ;; The edit may repair errors of other files, so these are checked again.
    (dolist (check gemini-companion-errors--checks)
      (setf (gemini-companion-errors--check-state check) 'waiting))
    (gemini-companion-errors--end-of file)
    (if (< gemini-companion-errors--largest
           (max (string-bytes (or before "")) (string-bytes after)))
        (funcall answer nil)
      (gemini-companion-errors--begin
       (make-gemini-companion-errors--check
        :file file
        :before (and before (gemini-companion-text-normalized before))
        :after (gemini-companion-text-normalized after)
        :callback answer)))))

(defun gemini-companion-errors--begin (check)
  "Add CHECK to the end of the queue, and start the timer of the queue."
  (setf (gemini-companion-errors--check-end check)
        (+ (float-time) gemini-companion-errors-timeout))
  (unless gemini-companion-errors--checks
    (run-at-time 0 0.05 #'gemini-companion-errors--step))
  (setq gemini-companion-errors--checks
        (append gemini-companion-errors--checks (list check))))

(defun gemini-companion-errors--step ()
  "Continue the first check, and end each that has timed out.
A timer calls this while there are checks."
  (dolist (check gemini-companion-errors--checks)
    ;; An error means that a server has exited, or that a buffer was killed.
    (unless (gemini-companion-log-guarded 'errors
              (save-match-data
                (gemini-companion-errors--step-of check))
              t)
      (gemini-companion-errors--end check nil))))

(defun gemini-companion-errors--step-of (check)
  "Continue CHECK if it is the first one, or end it if it has timed out."
  (cond ((<= (float-time) (gemini-companion-errors--check-end check))
         (when (eq check (car gemini-companion-errors--checks))
           (gemini-companion-errors--continue check)))
        ((eq 'others (gemini-companion-errors--check-state check))
         ;; Report what has been found in other files so far.
         (gemini-companion-errors--finish check))
        (t
         (gemini-companion-errors--end check nil))))

(defun gemini-companion-errors--continue (check)
  "Do the next step of CHECK, or end it if that is impossible."
  (cond ((gemini-companion-errors--outdated-p check)
         (gemini-companion-errors--end check nil))
        ((not (eq 'waiting (gemini-companion-errors--check-state check)))
         (gemini-companion-errors--learn check))
        ((gemini-companion-errors--find-source check)
         (gemini-companion-errors--plan check)
         (gemini-companion-errors--continue check))
        (t
         (gemini-companion-errors--end check nil))))

(defun gemini-companion-errors--outdated-p (check)
  "Return non-nil if the next text of CHECK has changed since the edit.
Only the text after the edit can have changed, in a buffer that visits the file."
  (let ((buffer (gemini-companion-names-buffer
                 (gemini-companion-errors--check-file check))))
    (and buffer
         (eq 'texts (gemini-companion-errors--check-state check))
         (eq (gemini-companion-errors--check-new check)
             (car (gemini-companion-errors--check-left check)))
         (not (string= (gemini-companion-errors--check-after check)
                       (gemini-companion-text-of-buffer buffer))))))

(defun gemini-companion-errors--find-source (check)
  "Set the source and the server of CHECK, and return non-nil on success.
Return nil if neither a server nor a mode checks the file, if the file must
not be shared, or if its texts are too large to be sent."
  (pcase-let* (((cl-struct gemini-companion-errors--check file before after) check)
               (buffer (gemini-companion-names-buffer file))
               (source (or buffer (gemini-companion-eglot-neighbor file)))
               (server (and source (gemini-companion-eglot-server source)))
               (size (max (string-bytes (or before "")) (string-bytes after))))
    (setf (gemini-companion-errors--check-source check) source
          (gemini-companion-errors--check-server check) server)
    (and (or server (and buffer (gemini-companion-errors-checker buffer)))
         (or buffer (<= size gemini-companion-eglot-sendable))
         (gemini-companion-context-name-shared-p file))))

(defun gemini-companion-errors--plan (check)
  "Set the texts whose errors CHECK needs, their order, and the other buffers.
The edit of CHECK may introduce errors in these buffers."
  (pcase-let* (((cl-struct gemini-companion-errors--check file before after source)
                check)
               (visited (gemini-companion-names-buffer file))
               (others (gemini-companion-errors--find-others check))
               (requestable (with-current-buffer source
                              (gemini-companion-eglot-error-requests file)))
               (known-text (and before
                                (gemini-companion-errors--known-text
                                 file before visited requestable others)))
               (old (cond (known-text)
                          ((and before (not visited))
                           (gemini-companion-errors--expect file before))))
               (new (gemini-companion-errors--expect file after)))
    (setf (gemini-companion-errors--check-state check) 'texts
          (gemini-companion-errors--check-others check) others
          (gemini-companion-errors--check-old check) old
          (gemini-companion-errors--check-new check) new
          (gemini-companion-errors--check-left check)
          (gemini-companion-errors--order
           old new
           :certain (or visited (and requestable (null others)))
           :others others
           :known known-text))))

(defun gemini-companion-errors--known-text
    (file content visited requestable others)
  "Return the earlier text CONTENT of FILE if its errors can be reused, or nil.
VISITED is the buffer of FILE, or nil.  REQUESTABLE is non-nil if its errors
are requested from a server, rather than published.  OTHERS are the other
buffers to check."
  (when-let* ((text (gemini-companion-errors--text-of file content)))
    (and (cond
          ;; The server will answer a request that was sent.
          ((and visited requestable)
           (gemini-companion-errors--text-asked text))
          ;; A server need not report again about a text that did not change.
          ((or visited (not (or requestable others)))
           (gemini-companion-errors--text-found text)))
         text)))

(cl-defun gemini-companion-errors--order (old new &key certain others known)
  "Return the texts OLD and NEW in the order in which to ask for their errors.
OLD is nil if there is no text to compare with.  CERTAIN is non-nil if each
answer is certain to be about the text that was asked for.  OTHERS are the
other buffers to check.  KNOWN is non-nil if the errors of OLD are known.

A text that comes twice is asked about again if the first result is doubtful;
see `gemini-companion-errors--advance'."
  (cond ((null old) (list new))
        (certain (list new old))
        ;; The server may have read NEW from the file, and checked OTHERS with it.
        (others (list old new))
        ;; Another program may have changed the known errors of OLD.
        (known (list new old old new))
        (t (list new old new))))

(defun gemini-companion-errors--learn (check)
  "Ask for the errors of the next text of CHECK, or store a report about them.
After the last text, wait for the errors of other files, and finish CHECK."
  (let ((text (car (gemini-companion-errors--check-left check))))
    (cond
     ((eq 'others (gemini-companion-errors--check-state check))
      (unless (gemini-companion-errors--others-awaited-p check)
        (gemini-companion-errors--finish check)))
     ((not (or (gemini-companion-errors--text-found text)
               (gemini-companion-errors--text-asked text)))
      (gemini-companion-errors--ask check text))
     ;; A server that is still loading files may report transient errors.
     ((gemini-companion-errors-busy-p
       (gemini-companion-errors--check-server check)))
     (t
      (gemini-companion-errors--take-report check text)
      (when (gemini-companion-errors--text-found text)
        (gemini-companion-errors--advance check text)
        (gemini-companion-errors--continue check))))))

(defun gemini-companion-errors--take-report (check text)
  "Set the errors of TEXT of CHECK from the report about its buffer.
Do so only for the text after the edit, in a buffer whose errors are published
rather than requested."
  (when-let* (((eq text (gemini-companion-errors--check-new check)))
              (file (gemini-companion-errors--check-file check))
              (buffer (gemini-companion-names-buffer file)))
    (with-current-buffer buffer
      (unless (gemini-companion-eglot-error-requests file)
        (setf (gemini-companion-errors--text-found text)
              (gemini-companion-errors--current))))))

(defun gemini-companion-errors--advance (check text)
  "Advance CHECK to the text after TEXT, whose errors are known.
After the last text, set its state to `others'."
  (let* ((new-p (eq text (gemini-companion-errors--check-new check)))
         (clean (null (car (gemini-companion-errors--text-found text))))
         (rest (cdr (gemini-companion-errors--check-left check))))
    ;; If there are no errors after the edit, no error is new.
    (when (and new-p clean)
      (setq rest nil))
    (when (and rest (not new-p) (gemini-companion-errors--doubtful-p check))
      (mapc #'gemini-companion-errors--ask-again rest))
    (setf (gemini-companion-errors--check-left check) rest)
    (unless rest
      (setf (gemini-companion-errors--check-state check) 'others))
    (when new-p
      (gemini-companion-errors--ask-others check))))

(defun gemini-companion-errors--doubtful-p (check)
  "Return non-nil if CHECK has new errors outside of the lines of its edit.
A server that is still loading files may report such errors transiently."
  (pcase-let (((cl-struct gemini-companion-errors--check before after old new)
               check))
    (cl-flet ((new-errors (result)
                (gemini-companion-code-new-errors
                 (car (gemini-companion-errors--text-found new))
                 after result before)))
      (or (string-blank-p before)
          (seq-difference
           (new-errors (gemini-companion-errors--text-found old))
           (new-errors nil))))))

(defun gemini-companion-errors--ask (check text)
  "Start checking TEXT of CHECK, whose errors a later step will store."
  (setf (gemini-companion-errors--text-asked text) t)
  (pcase-let* (((cl-struct gemini-companion-errors--check file before after server)
                check)
               (buffer (gemini-companion-names-buffer file)))
    (cond ((null buffer)
           (gemini-companion-eglot-when-read
            server (apply-partially #'gemini-companion-errors--send check text)))
          ((null server)
           (with-current-buffer buffer
             (gemini-companion-errors--start-check)))
          (t
           (with-current-buffer buffer
             (when before
               (gemini-companion-eglot-reopen before after))
             (gemini-companion-eglot-sync)
             (gemini-companion-errors--request text))))))

(defun gemini-companion-errors--send (check text)
  "Send TEXT to the server of CHECK, and request its errors if supported.
Do nothing if CHECK has ended, or no longer asks about TEXT."
  (gemini-companion-log-guarded 'errors
    (save-match-data
      (when (and (eq 'texts (gemini-companion-errors--check-state check))
                 (memq text (gemini-companion-errors--check-left check))
                 (memq check gemini-companion-errors--checks))
        (pcase-let (((cl-struct gemini-companion-errors--check
                                file source server version)
                     check))
          (when version
            (gemini-companion-eglot-close file server))
          (gemini-companion-errors--keep-reports)
          (let ((sent (gemini-companion-eglot-open
                       file server (gemini-companion-errors--text-content text)
                       source)))
            (setf (gemini-companion-errors--check-version check) sent)
            (unless (with-current-buffer source
                      (gemini-companion-errors--request text))
              (setf (gemini-companion-errors--text-asked text) sent))))))))

(defun gemini-companion-errors--finish (check)
  "End CHECK with the new errors, or with nil if the file has another text."
  (pcase-let* (((cl-struct gemini-companion-errors--check
                           file before after old new names others)
                check)
               (introduced
                (gemini-companion-code-new-errors
                 (car (gemini-companion-errors--text-found new)) after
                 (cond ((null before) '(nil))
                       (old (gemini-companion-errors--text-found old)))
                 (or before "")))
               (elsewhere
                (delq nil (mapcar (apply-partially
                                   #'gemini-companion-errors--new-in-other names)
                                  others))))
    (gemini-companion-errors--end
     check
     (and (or introduced elsewhere)
          (gemini-companion-context-name-shared-p file)
          (string= after (gemini-companion-text-normalized
                          (gemini-companion-text-read file)))
          (list :path file
                :count (length introduced)
                :errors (mapcar #'gemini-companion-code-located-error
                                (seq-take introduced 10))
                :others elsewhere)))))

(defun gemini-companion-errors--end-of (file)
  "End each check of FILE, a true name, without a result."
  (dolist (check gemini-companion-errors--checks)
    (when (equal file (gemini-companion-errors--check-file check))
      (gemini-companion-errors--end check nil))))

(defun gemini-companion-errors--end (check result)
  "End CHECK, unless it has ended, and call its callback with RESULT."
  (when (memq check gemini-companion-errors--checks)
    (setq gemini-companion-errors--checks
          (delq check gemini-companion-errors--checks))
    (unless gemini-companion-errors--checks
      (cancel-function-timers #'gemini-companion-errors--step))
    (pcase-let (((cl-struct gemini-companion-errors--check
                            file server version callback)
                 check))
      (gemini-companion-log-guarded 'errors
        (when (and version (jsonrpc-running-p server))
          (gemini-companion-eglot-close file server)))
      (gemini-companion-log-guarded 'errors
        (funcall callback result)))))

;;;; Other files

(defun gemini-companion-errors--find-others (check)
  "Set the names of CHECK, and return the buffers of its server with one of them.
Omit the buffer that visits the file, and buffers whose errors are unknown."
  (pcase-let* (((cl-struct gemini-companion-errors--check
                           file before after server)
                check)
               (names (and server before
                           (gemini-companion-code-changed-names before after))))
    (setf (gemini-companion-errors--check-names check) names)
    (when names
      (seq-filter
       (lambda (buffer)
         (with-current-buffer buffer
           (and buffer-file-name
                (eq server (gemini-companion-eglot-server buffer))
                (gemini-companion-errors--current)
                (let ((case-fold-search nil))
                  (string-match-p names (gemini-companion-text-of-buffer))))))
       (remq (gemini-companion-names-buffer file) (buffer-list))))))

(defun gemini-companion-errors--others-awaited-p (check)
  "Return non-nil if there is no new report yet about another file of CHECK."
  (seq-some (lambda (buffer)
              (eq (alist-get buffer gemini-companion-errors--earlier-reports)
                  (buffer-local-value 'gemini-companion-errors--last-report
                                      buffer)))
            (gemini-companion-errors--check-others check)))

(defun gemini-companion-errors--ask-others (check)
  "Make the server of CHECK report the errors of the other buffers.
Request them if the server supports that."
  (pcase-let (((cl-struct gemini-companion-errors--check file server others) check))
    ;; Without this, language servers that check other files only when a file is
    ;; saved report nothing.  For a header, clangd then checks all files that include
    ;; it, even those with none of the changed names.
    (when (or others (and server (string-match-p "\\.h[^/.]*\\'" file)))
      (jsonrpc-notify
       server :textDocument/didSave
       `(:textDocument (:uri ,(gemini-companion-eglot-uri file)))))
    (dolist (buffer others)
      (with-current-buffer buffer
        (when (gemini-companion-errors--request-report buffer)
          ;; A report that the server has published may be incomplete.
          (setq gemini-companion-errors--last-report
                (alist-get buffer gemini-companion-errors--earlier-reports)))))))

(defun gemini-companion-errors--request-report (buffer)
  "Request a report about BUFFER, which is current.
Return nil if its server does not support that."
  (let ((tick (buffer-chars-modified-tick)))
    (gemini-companion-eglot-request-errors
     (gemini-companion-text-true-name buffer-file-truename)
     (lambda (errors)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (setq gemini-companion-errors--last-report
                 (gemini-companion-errors--report tick errors nil))))))))

(defun gemini-companion-errors--new-in-other (names buffer)
  "Return (FILE COUNT ERROR) for the new errors of BUFFER about NAMES, or nil.
NAMES is a regexp, which matches the message of each error or its line.
FILE is that of BUFFER, COUNT the number of errors, and ERROR the first one."
  (with-current-buffer buffer
    (when-let* ((earlier (alist-get buffer
                                    gemini-companion-errors--earlier-reports))
                ((eql (gemini-companion-errors--report-tick earlier)
                      (buffer-chars-modified-tick)))
                (file (gemini-companion-text-true-name buffer-file-name))
                ((gemini-companion-context-name-shared-p file))
                (now (gemini-companion-errors--current))
                (text (gemini-companion-text-of-buffer))
                (new (seq-filter
                      (pcase-lambda ((cl-struct gemini-companion-code-located
                                                error content))
                        (string-match-p names
                                        (concat (nth 1 error) "\n" content)))
                      (gemini-companion-code-new-errors
                       (car now) text
                       (list (gemini-companion-errors--report-errors earlier))
                       text))))
      (list file (length new)
            (gemini-companion-code-located-error (car new))))))

;;;; Life

(cl-defmethod gemini-companion-part-findings ((_part (eql 'errors)) _directory)
  "Return a finding if no program knows the errors of an open file."
  (unless (seq-some #'gemini-companion-errors-checker (buffer-list))
    '(("Links" note "No open file is checked, so no errors are reported"
       "Start Eglot, Flymake or Flycheck in a file."))))

(defun gemini-companion-errors--before-revert ()
  "Record the errors of this buffer, or request them.
`before-revert-hook' calls this."
  (gemini-companion-log-guarded 'errors
    (when (and buffer-file-truename (not (buffer-modified-p))
               (<= (buffer-size) gemini-companion-errors--largest))
      (let* ((file (gemini-companion-text-true-name buffer-file-truename))
             (check (car gemini-companion-errors--checks))
             ;; The check may wait for a report about this buffer.
             (awaited (and check
                           (memq (current-buffer)
                                 (gemini-companion-errors--check-others check))))
             (result (and (not awaited) (gemini-companion-errors--current))))
        (gemini-companion-errors--keep-reports)
        (when (or result (gemini-companion-eglot-error-requests file))
          (gemini-companion-eglot-sync)
          (let ((text (gemini-companion-errors--expect
                       file (gemini-companion-text-of-buffer))))
            (unless (gemini-companion-errors--request text)
              (setf (gemini-companion-errors--text-found text) result))))))))

(defun gemini-companion-errors--managed ()
  "End the check of this file, as Eglot has opened or closed it.
`eglot-managed-mode-hook' calls this."
  (unless (gemini-companion-eglot-managed-p)
    (setq gemini-companion-errors--last-report
          (gemini-companion-errors--report nil nil 0)))
  (gemini-companion-errors--end-of
   (gemini-companion-text-true-name buffer-file-truename)))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'errors)))
  "Follow Eglot, Flymake and Flycheck."
  '((eglot-managed-mode-hook gemini-companion-errors--managed)
    (flymake-diagnostic-functions gemini-companion-errors--begins)
    (flycheck-before-syntax-check-hook gemini-companion-errors--begins)
    (flycheck-after-syntax-check-hook gemini-companion-errors--flycheck-ended)
    (before-revert-hook gemini-companion-errors--before-revert)))

(defconst gemini-companion-errors--advice
  '((eglot-handle-notification :after gemini-companion-errors--notified)
    (jsonrpc-notify :before gemini-companion-errors--record-sent))
  "Advice for functions of Eglot and jsonrpc, which may be loaded later.")

(cl-defmethod gemini-companion-part-start ((_part (eql 'errors)))
  "Start recording the errors of visited files."
  (dolist (advice gemini-companion-errors--advice)
    (apply #'advice-add advice)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'errors)))
  "End each check, and drop all errors."
  (mapc (lambda (check) (gemini-companion-errors--end check nil))
        gemini-companion-errors--checks)
  (pcase-dolist (`(,name ,_ ,function) gemini-companion-errors--advice)
    (advice-remove name function))
  (setq gemini-companion-errors--busy nil
        gemini-companion-errors--texts nil
        gemini-companion-errors--earlier-reports nil)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (mapc #'kill-local-variable
            '(gemini-companion-errors--begun
              gemini-companion-errors--last-report
              gemini-companion-errors--sent)))))

(provide 'gemini-companion-errors)
;;; gemini-companion-errors.el ends here
