;;; gemini-companion-diagnostics.el --- Diagnostics, and errors that an edit has made  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read the diagnostics of Eglot, Flymake and Flycheck, to answer the questions of
;; a model, and to find the errors that an edit of a CLI has made.
;;
;; A report about an edit is believed if it is about the text that was written: if
;; it names the version of that text, if it answers a request that was sent after
;; the text, or if Flymake or Flycheck began to check that text.  Otherwise
;; nothing is said.
;;
;; An error is new if it is not among the errors of the text before.  Those are
;; read when a buffer is reverted; if they are not known, only errors in new lines
;; are new.  For a file that no buffer visits, the language server of its project
;; gets the text after the edit, and the text before it.

;;; Code:

(require 'flymake)
(require 'gemini-companion-lookup)
(require 'gemini-companion-server)
(require 'gemini-companion-text)
(require 'jsonrpc)

(declare-function flycheck-buffer "ext:flycheck")
(declare-function flycheck-error-filename "ext:flycheck" t t)
(declare-function flycheck-error-level "ext:flycheck" t t)
(declare-function flycheck-error-level-compilation-level "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck" t t)
(declare-function flycheck-error-message "ext:flycheck" t t)
(declare-function flycheck-stop "ext:flycheck")
(defvar flycheck-current-errors)
(defvar flycheck-last-status-change)
(defvar flymake-list-only-diagnostics)

;;;; Reading

(defvar-local gemini-companion-diagnostics--begun nil
  "Tick of the text that Flymake or Flycheck has begun to check last.")

(defvar-local gemini-companion-diagnostics--last-report nil
  "Last report about this buffer, or nil.
A list (TICK ERRORS VERSION): the tick of the text, its errors, and the
version that the report of a language server named, or nil.  TICK is nil
if the next report may be about a file that was closed.")
;; A revert may turn on the major mode.
(put 'gemini-companion-diagnostics--last-report 'permanent-local t)

(defvar-local gemini-companion-diagnostics--earlier-report nil
  "Last report about this buffer when a text was last replaced.")

(defvar-local gemini-companion-diagnostics--sent nil
  "Cons of the version of the text that Eglot has sent last, and its tick.")

(defun gemini-companion-diagnostics-checker (buffer)
  "Return the mode for diagnostics in BUFFER, or nil."
  (with-current-buffer buffer
    (cond ((and flymake-mode
                ;; Others than Eglot count from the first visible line.
                (or (not (buffer-narrowed-p)) (gemini-companion-lookup-managed-p)))
           'flymake-mode)
          ((bound-and-true-p flycheck-mode) 'flycheck-mode))))

(defun gemini-companion-diagnostics--begins (&optional report &rest _)
  "Record that Flymake or Flycheck begins to check this text.
This is also a backend of Flymake, which calls REPORT with no errors."
  (setq gemini-companion-diagnostics--begun (buffer-chars-modified-tick))
  (when report
    (funcall report nil)))

(defun gemini-companion-diagnostics--flycheck-ended ()
  "Keep the errors of this buffer, which Flycheck clears before a revert."
  (gemini-companion-server-guarded 'errors
    (when-let* ((known (gemini-companion-diagnostics--checked-errors)))
      (setq gemini-companion-diagnostics--last-report
            (cons gemini-companion-diagnostics--begun known)))))

(defun gemini-companion-diagnostics--start-check ()
  "Start a check by Flymake or Flycheck, unless one has begun.
By itself one may begin only when the buffer is displayed."
  (unless (eql gemini-companion-diagnostics--begun (buffer-chars-modified-tick))
    (pcase (gemini-companion-diagnostics-checker (current-buffer))
      ('flymake-mode (flymake-start)
                     ;; A buffer may have only backends of its own.
                     (gemini-companion-diagnostics--begins))
      ('flycheck-mode (flycheck-stop)
                      (flycheck-buffer)))))

(defun gemini-companion-diagnostics--checkable-p ()
  "Return non-nil if Flymake or Flycheck can check this buffer."
  (pcase (gemini-companion-diagnostics-checker (current-buffer))
    ('flymake-mode
     ;; Flymake keeps the state of a language server that has ended.
     (remq #'gemini-companion-diagnostics--begins
           (seq-intersection
            (flymake-running-backends)
            (append flymake-diagnostic-functions
                    (default-value 'flymake-diagnostic-functions)))))
    ('flycheck-mode
     (not (memq flycheck-last-status-change '(no-checker errored))))))

(defun gemini-companion-diagnostics--checked-p ()
  (and (eql gemini-companion-diagnostics--begun (buffer-chars-modified-tick))
       (gemini-companion-diagnostics--checkable-p)
       (if flymake-mode
           (null (seq-difference (flymake-running-backends)
                                 (flymake-reporting-backends)))
         (eq 'finished flycheck-last-status-change))))

(defun gemini-companion-diagnostics--checked-errors ()
  "Return a list of the errors that Flymake or Flycheck has found in this text.
Return nil if it has not checked this text."
  (when (gemini-companion-diagnostics--checked-p)
    (list (cl-loop for (line severity text)
                   in (gemini-companion-diagnostics--of-buffer)
                   when (equal severity "error")
                   collect (list line text nil)))))

(defun gemini-companion-diagnostics--of-buffer ()
  "Return what Flymake or Flycheck has in this buffer.
They are lists of LINE, SEVERITY and TEXT."
  (if (eq 'flycheck-mode (gemini-companion-diagnostics-checker (current-buffer)))
      (cl-loop
       for error in flycheck-current-errors
       for file = (flycheck-error-filename error)
       ;; Another file may not be shared.
       when (or (null file) (file-equal-p file buffer-file-name))
       collect
       (gemini-companion-diagnostics--row
        (flycheck-error-line error)
        ;; Other packages define levels.
        (flycheck-error-level-compilation-level (flycheck-error-level error))
        (or (flycheck-error-message error) "")))
    (save-restriction
      (widen)
      (mapcar (lambda (diagnostic)
                (gemini-companion-diagnostics--of-flymake
                 diagnostic
                 (line-number-at-pos (flymake-diagnostic-beg diagnostic))))
              (flymake-diagnostics)))))

(defun gemini-companion-diagnostics--of-flymake (diagnostic line)
  (let ((type (flymake-diagnostic-type diagnostic)))
    (gemini-companion-diagnostics--row
     line (or (get type 'flymake-category) type)
     (flymake-diagnostic-text diagnostic))))

(defun gemini-companion-diagnostics--row (line level text)
  "Return LINE, the severity of LEVEL and TEXT."
  (list line
        (pcase level
          ((or 2 :error 'flymake-error) "error")
          ((or 1 :warning 'flymake-warning) "warning")
          (_ "note"))
        (string-replace "\n" " " text)))

;;;; Questions

(defun gemini-companion-diagnostics-answer (file answer)
  "Call ANSWER with the diagnostics of FILE, or of all checked files if nil.
The argument is a plist: `:rows', lists of LINE, SEVERITY and TEXT, or
of FILE and the numbers of its errors and warnings; or `:problem', why
there is no answer."
  (gemini-companion-lookup-guarded answer
    (if file
        (gemini-companion-diagnostics--await-check
         (gemini-companion-lookup-true-name file) answer (+ 3 (float-time)))
      (gemini-companion-lookup-shared
       (append (mapcar (lambda (known) (list (car known)))
                       (bound-and-true-p flymake-list-only-diagnostics))
               (mapcar (lambda (buffer) (list (buffer-file-name buffer)))
                       (seq-filter #'gemini-companion-diagnostics-checker
                                   (buffer-list))))
       (lambda (files)
         (cl-loop
          for (name) in files
          for severities = (mapcar
                            #'cadr
                            (ignore-errors
                              (gemini-companion-diagnostics--of-file name)))
          collect (list name
                        (cl-count "error" severities :test #'equal)
                        (cl-count "warning" severities :test #'equal))
          into rows
          finally (funcall answer (list :rows rows))))))))

(defun gemini-companion-diagnostics--await-check (file answer end)
  "Call ANSWER with the diagnostics of FILE when its text has been checked.
Wait until END at most, which is a `float-time'."
  (gemini-companion-lookup-guarded answer
    (let ((buffer (gemini-companion-lookup-buffer file)))
      (cond ((or (null buffer)
                 (with-current-buffer buffer
                   (gemini-companion-diagnostics--answerable-p)))
             (funcall
              answer
              (list :rows (gemini-companion-diagnostics--of-file file))))
            ((< (float-time) end)
             (run-at-time 0.05 nil #'gemini-companion-diagnostics--await-check
                          file answer end))
            (t
             (gemini-companion-lookup-fail
              "Emacs has not checked the current text of this file yet; \
ask again"))))))

(defun gemini-companion-diagnostics--answerable-p ()
  "Return non-nil unless this text is yet to be checked.
Have it checked if necessary."
  (gemini-companion-diagnostics--start-check)
  (or (not (gemini-companion-diagnostics--checkable-p))
      (and (verify-visited-file-modtime)
           (gemini-companion-diagnostics--checked-p)
           ;; Flymake does not know whether a server has yet to report; of one
           ;; that names no versions, it is not known either.
           (or (not (gemini-companion-lookup-managed-p))
               (and gemini-companion-diagnostics--last-report
                    (null (nth 2 gemini-companion-diagnostics--last-report)))
               (eql (car gemini-companion-diagnostics--last-report)
                    (buffer-chars-modified-tick))))))

(defun gemini-companion-diagnostics--of-file (file)
  "Return the diagnostics of FILE, lists of LINE, SEVERITY and TEXT.
Signal an error if it is not checked."
  (if-let* ((buffer (gemini-companion-lookup-buffer file))
            ((with-current-buffer buffer
               (gemini-companion-diagnostics--checkable-p))))
      (with-current-buffer buffer
        (gemini-companion-diagnostics--of-buffer))
    (mapcar (lambda (diagnostic)
              (gemini-companion-diagnostics--of-flymake
               diagnostic
               ;; Of a file without a buffer, it is (LINE . COLUMN).
               (car (flymake-diagnostic-beg diagnostic))))
            ;; A server also reports none for a file that it does not check.
            (or (cdr (assoc file (bound-and-true-p
                                  flymake-list-only-diagnostics)))
                (gemini-companion-lookup-fail
                 "Emacs does not check this file; run the project's own checks")))))

;;;; Errors that are new

;; An error is a list of its LINE, TEXT and SOURCE.

(defconst gemini-companion-diagnostics--hiding
  (concat "syntax\\|expect\\|indent\\|clos\\|unterminated\\|unmatched\\|pars\\|"
          "separated\\|\\<EO[FL]\\>\\|not found\\|fatal\\|too many errors")
  "Regexp for errors with which a checker may not see others.")

(defun gemini-companion-diagnostics--located (errors text)
  "Return the ERRORS in TEXT as lists (ERROR KIND CONTENT), by line.
KIND is the text of ERROR without numbers, as they may be line numbers,
and CONTENT its line."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (let ((at 1))
      (mapcar
       (lambda (error)
         (forward-line (- (car error) at))
         (setq at (car error))
         (list error
               (replace-regexp-in-string "[0-9]+" "0" (nth 1 error))
               (buffer-substring-no-properties (point) (line-end-position))))
       (seq-sort-by #'car #'< errors)))))

(defun gemini-companion-diagnostics--new (errors text old-errors old-text)
  "Return the ERRORS in TEXT that are new, as lists (ERROR KIND CONTENT).
OLD-ERRORS are the errors of OLD-TEXT, the earlier text.  An error that
has only moved or was copied is not new, nor is one that may be a changed
form of an earlier error.  If an error is gone that may have hidden
others, or OLD-ERRORS is `unknown', only errors in new lines are new."
  (let* ((key (pcase-lambda (`(,_ ,kind ,content))
                (cons kind (string-trim content))))
         (old (mapcar key (gemini-companion-diagnostics--located
                           (and (listp old-errors) old-errors) old-text)))
         (left (copy-sequence old))
         (new (seq-remove
               (lambda (one)
                 (when-let* ((same (member (funcall key one) left)))
                   (setcar same nil))
                 (member (funcall key one) old))
               (gemini-companion-diagnostics--located errors text)))
         (gone (mapcar #'car (remq nil left)))
         (case-fold-search t))
    (setq new (seq-remove (lambda (one) (member (nth 1 one) gone)) new))
    (when (or (eq 'unknown old-errors)
              (seq-some (apply-partially #'string-match-p
                                         gemini-companion-diagnostics--hiding)
                        gone))
      (setq old-text (concat "\n" old-text "\n")
            new (seq-remove
                 (lambda (one)
                   (string-search (concat "\n" (nth 2 one) "\n") old-text))
                 ;; Each takes time in a large text.
                 (seq-take new 20))))
    new))

;;;; Checks

(defvar gemini-companion-diagnostics-timeout 2.6
  "Seconds after which an unfinished check ends without a result.
The CLI waits for it.")

(defconst gemini-companion-diagnostics--largest (* 512 1024)
  "Size in bytes of a text above which it is not checked.")

(defvar gemini-companion-diagnostics--checks nil
  "The checks, of which only the first one runs.
The texts that another check sends would disturb it.

Each is an alist: `file' is a true name, whose text was `before', and is
`after' now.  `callback' is called at the end, at the time `end' at the
latest.  `source' is the buffer that visits `file', or else one of its
language server, `server', which has the text with `version' then.
`left' are the texts whose errors are to be known; `asked' is an alist of
texts and their elements of `gemini-companion-diagnostics--known'.  `others'
are the buffers that have one of `names', a regexp for the names of
definitions that were changed, or nil.")

(defvar gemini-companion-diagnostics--known nil
  "List of ((FILE . TEXT) ERRORS VERSION), the last texts.
FILE is a true name.  ERRORS is `unknown' until they are reported, maybe
by the VERSION of a text that was sent.  A change of another file forgets
them.")

(defvar gemini-companion-diagnostics--busy
  (make-hash-table :test #'eq :weakness 'key)
  "Tokens of the work in progress of each language server.")

(defun gemini-companion-diagnostics--expect (file text)
  "Return a new element of `gemini-companion-diagnostics--known'.
It is for TEXT of FILE, a true name, whose errors may have changed."
  (let* ((key (cons file text))
         (known (list key 'unknown nil)))
    (setq gemini-companion-diagnostics--known
          (cons known
                (seq-take (assoc-delete-all key gemini-companion-diagnostics--known)
                          7)))
    known))

(defun gemini-companion-diagnostics--forget-others (file)
  "Forget the errors of other files than FILE, as its change may change them."
  (setq gemini-companion-diagnostics--known
        (seq-filter (pcase-lambda (`((,other . ,_) ,errors . ,_))
                      (or (equal file other) (eq 'unknown errors)))
                    gemini-companion-diagnostics--known)))

(defun gemini-companion-diagnostics-after-edit (file before after callback)
  "Call CALLBACK with the errors that an edit of FILE made.
FILE is an absolute name; a CLI has changed its text from BEFORE,
nil if there was no such file, to AFTER, and the buffers that visit
it were reverted.  The argument is a plist: `:path', the true name of
FILE; `:count', the number of new errors; `:errors', ten of them at
most, lists of LINE, TEXT and SOURCE; and `:others', lists of another
file, the number of its new errors, and the first one.  It is nil if
there are none, or if they are not known within three seconds."
  (let ((file (or (gemini-companion-text-true-name file) file)))
    (gemini-companion-diagnostics--forget-others file)
    ;; The edit may repair errors of other files, so these are checked again.
    (dolist (check gemini-companion-diagnostics--checks)
      (setf (alist-get 'source check) nil))
    (gemini-companion-diagnostics--end-of file)
    (if (< gemini-companion-diagnostics--largest
           (max (string-bytes (or before "")) (string-bytes after)))
        (funcall callback nil)
      (unless gemini-companion-diagnostics--checks
        (run-at-time 0 0.05 #'gemini-companion-diagnostics--step))
      (setq gemini-companion-diagnostics--checks
            (append gemini-companion-diagnostics--checks
                    `(((file . ,file)
                       (before . ,(and before
                                       (gemini-companion-text-normalized before)))
                       (after . ,(gemini-companion-text-normalized after))
                       (callback . ,callback)
                       (end . ,(+ (float-time)
                                  gemini-companion-diagnostics-timeout))
                       ,@(mapcar #'list '(source server version left asked
                                                 names others)))))))))

(defun gemini-companion-diagnostics--step ()
  "Continue the first check, and end those whose time is up."
  (dolist (check gemini-companion-diagnostics--checks)
    (let-alist check
      (condition-case nil
          (save-match-data
            (cond ((< .end (float-time))
                   ;; What is known of other files is enough.
                   (if (or .left (not .source))
                       (gemini-companion-diagnostics--end check nil)
                     (gemini-companion-diagnostics--finish check)))
                  ((not (eq check (car gemini-companion-diagnostics--checks))))
                  ((or .source (gemini-companion-diagnostics--begin check))
                   (gemini-companion-diagnostics--learn check))
                  (t
                   (gemini-companion-diagnostics--end check nil))))
        ;; A server has ended, or a buffer was killed or has another text.
        (error (gemini-companion-diagnostics--end check nil))))))

(defun gemini-companion-diagnostics--begin (check)
  "Find out who knows about the file of CHECK, and which texts to ask about.
Return nil if no checker knows about it, or if it may not be shared."
  (let-alist check
    (let* ((buffer (gemini-companion-lookup-buffer .file))
           (source (and (gemini-companion-lookup-shared-p .file)
                        (or buffer (gemini-companion-lookup-neighbor .file))))
           (server (and source (gemini-companion-lookup-server source)))
           (size (max (string-bytes (or .before "")) (string-bytes .after))))
      (when (and source
                 (or server (gemini-companion-diagnostics-checker source))
                 (or buffer (<= size gemini-companion-lookup-sendable)))
        (let* ((names (and server .before
                           (gemini-companion-diagnostics--changed-names
                            .before .after)))
               (others (and names (gemini-companion-diagnostics--find-others
                                   .file server names)))
               (answers (with-current-buffer source
                          (gemini-companion-diagnostics--error-requests .file)))
               (old (assoc (cons .file .before)
                           gemini-companion-diagnostics--known)))
          ;; Of a text like the last one, a server need not report.
          (unless (if (and buffer answers) old
                    (and (listp (nth 1 old))
                         (or buffer (not (or answers others)))))
            (setq old nil))
          (setf (alist-get 'source check) source
                (alist-get 'server check) server
                (alist-get 'names check) names
                (alist-get 'others check) others
                (alist-get 'asked check) (and old (list (cons .before old)))
                (alist-get 'left check)
                (cond ((or (null .before) (and buffer (not old))) (list .after))
                      ((or buffer (and answers (null others)))
                       (list .after .before))
                      ;; It may know the text after the edit from the file.
                      (others (list .before .after))
                      ;; Other programs may have changed what was known.
                      (t `(,.after ,.before ,@(and old (list .before))
                                   ,.after)))))))))

(defun gemini-companion-diagnostics--learn (check)
  "Ask for the errors of the texts of CHECK, and end it when all are known."
  (let-alist check
    (let* ((text (car .left))
           (last (eq text .after))
           (known (alist-get text .asked)))
      (cond
       ((null text)
        (unless (seq-some (lambda (buffer)
                            (with-current-buffer buffer
                              (eq gemini-companion-diagnostics--last-report
                                  gemini-companion-diagnostics--earlier-report)))
                          .others)
          (gemini-companion-diagnostics--finish check)))
       ((null known)
        (gemini-companion-diagnostics--ask check text))
       ((gethash .server gemini-companion-diagnostics--busy))
       (t
        (when-let* ((last)
                    (buffer (gemini-companion-diagnostics--buffer .file text)))
          (with-current-buffer buffer
            (unless (gemini-companion-diagnostics--error-requests .file)
              (pcase (gemini-companion-diagnostics--current)
                (`(,errors) (setf (nth 1 known) errors))))))
        (pcase known
          (`(,_ ,(and errors (pred listp)) . ,_)
           (setf (alist-get 'left check)
                 ;; Without errors after the edit, those before do not matter.
                 (and (or errors (not last)) (cdr .left)))
           (when (and (cdr .left) (not last)
                      (gemini-companion-diagnostics--doubtful-p check errors))
             (setf (alist-get 'asked check)
                   (unless (cddr .left) (list (cons text known)))))
           (when last
             (gemini-companion-diagnostics--ask-others check))
           (gemini-companion-diagnostics--learn check))))))))

(defun gemini-companion-diagnostics--doubtful-p (check old-errors)
  "Return non-nil unless all new errors of CHECK are in lines of its edit.
OLD-ERRORS are those before it.  A server that is loading files may
report others for a while."
  (let-alist check
    (cl-flet ((new (old-errors)
                (gemini-companion-diagnostics--new
                 (cadr (alist-get .after .asked)) .after old-errors .before)))
      (or (string-blank-p .before)
          (seq-difference (new old-errors) (new 'unknown))))))

(defun gemini-companion-diagnostics--ask (check text)
  (let-alist check
    (let ((buffer (gemini-companion-diagnostics--buffer .file text))
          (known (gemini-companion-diagnostics--expect .file text)))
      (push (cons text known) (alist-get 'asked check))
      (if buffer
          (with-current-buffer buffer
            (if (null .server)
                (gemini-companion-diagnostics--start-check)
              (when .before
                (gemini-companion-diagnostics--reopen .before .after))
              (gemini-companion-diagnostics--sync)
              (gemini-companion-diagnostics--request known)))
        ;; Sending a text to a server that does not read would block Emacs.  It
        ;; must answer that it does not know this method.
        (gemini-companion-lookup-request
         .server '((:$/gemini-companion))
         (lambda (_) (gemini-companion-diagnostics--send check known)))))))

(defun gemini-companion-diagnostics--buffer (file text)
  "Return the buffer that visits FILE, or nil.
Signal an error unless it has TEXT."
  (when-let* ((buffer (gemini-companion-lookup-buffer file)))
    (unless (string= text (gemini-companion-text-of-buffer buffer))
      (error "The buffer has another text"))
    buffer))

(defun gemini-companion-diagnostics--send (check known)
  "Send the text of KNOWN to the server of CHECK, unless CHECK has ended.
Request its errors if the server supports that."
  (let-alist check
    ;; Another edit may have begun CHECK again.
    (when (and .source
               (rassq known .asked)
               (memq check gemini-companion-diagnostics--checks)
               (jsonrpc-running-p .server))
      (when .version
        (gemini-companion-lookup-close .file .server))
      (gemini-companion-diagnostics--keep-reports)
      (let ((version (gemini-companion-lookup-open .file .server (cdar known)
                                                   .source)))
        (setf (alist-get 'version check) version)
        (unless (with-current-buffer .source
                  (gemini-companion-diagnostics--request known))
          (setf (nth 2 known) version))))))

(defun gemini-companion-diagnostics--finish (check)
  "End CHECK with its result, if its text is still in the file."
  (let-alist check
    (let ((new (gemini-companion-diagnostics--new
                (cadr (alist-get .after .asked)) .after
                (if .before (nth 1 (alist-get .before .asked '(nil unknown))))
                (or .before "")))
          (elsewhere
           (delq nil (mapcar (lambda (buffer)
                               (gemini-companion-diagnostics--new-in-other
                                buffer .names))
                             .others))))
      (gemini-companion-diagnostics--end
       check
       (and (or new elsewhere)
            (string= .after (gemini-companion-text-normalized
                             (gemini-companion-text-read .file)))
            (list :path .file
                  :count (length new)
                  :errors (mapcar #'car (seq-take new 10))
                  :others elsewhere))))))

(defun gemini-companion-diagnostics--end-of (file &optional key)
  "End each check of FILE; if KEY is non-nil, each one that has it."
  (dolist (check gemini-companion-diagnostics--checks)
    (when (and (equal file (alist-get 'file check))
               (or (null key) (alist-get key check)))
      (gemini-companion-diagnostics--end check nil))))

(defun gemini-companion-diagnostics--end (check result)
  (when (memq check gemini-companion-diagnostics--checks)
    (setq gemini-companion-diagnostics--checks
          (delq check gemini-companion-diagnostics--checks))
    (unless gemini-companion-diagnostics--checks
      (cancel-function-timers #'gemini-companion-diagnostics--step))
    (let-alist check
      (gemini-companion-server-guarded 'errors
        (when (and .version (jsonrpc-running-p .server))
          (gemini-companion-lookup-close .file .server)))
      (gemini-companion-server-guarded 'errors
        (funcall .callback result)))))

;;;; Language servers

(defun gemini-companion-diagnostics--notified (server method &rest params)
  (gemini-companion-server-guarded 'errors
    (save-match-data
      (pcase method
        ('textDocument/publishDiagnostics
         (gemini-companion-diagnostics--published server params))
        ('$/progress
         (let ((token (plist-get params :token))
               (tokens (gethash server gemini-companion-diagnostics--busy)))
           (pcase (plist-get (plist-get params :value) :kind)
             ("begin" (push token tokens))
             ("end" (setq tokens (delete token tokens))))
           (puthash server tokens gemini-companion-diagnostics--busy)))))))

(defun gemini-companion-diagnostics--published (server params)
  (when-let* ((path (gemini-companion-lookup-path (plist-get params :uri)))
              (file (gemini-companion-text-true-name path)))
    (let ((version (plist-get params :version))
          (errors (gemini-companion-diagnostics--errors
                   (plist-get params :diagnostics)))
          (buffer (gemini-companion-lookup-buffer file)))
      (if buffer
          (with-current-buffer buffer
            (when (and (eq server (gemini-companion-lookup-server buffer))
                       ;; Eglot opens a file with the version 0, which some
                       ;; servers leave out.
                       (equal gemini-companion-diagnostics--sent
                              (cons (or version 0) (buffer-chars-modified-tick)))
                       (or version errors
                           (null gemini-companion-diagnostics--last-report)
                           (car gemini-companion-diagnostics--last-report)))
              (gemini-companion-diagnostics--record errors version)))
        (dolist (known gemini-companion-diagnostics--known)
          (when (and version (equal file (caar known)) (eql version (nth 2 known))
                     ;; A server may report none when the file is closed.
                     (or errors (eq 'unknown (nth 1 known))))
            (setf (nth 1 known) errors)))))))

(defun gemini-companion-diagnostics--record (errors &optional version)
  "Record the ERRORS of this text, of which its server has named the VERSION."
  (unless (eql (buffer-chars-modified-tick)
               (car gemini-companion-diagnostics--last-report))
    (gemini-companion-diagnostics--forget-others
     (expand-file-name buffer-file-truename)))
  (setq gemini-companion-diagnostics--last-report
        (list (buffer-chars-modified-tick) errors version)))

(defun gemini-companion-diagnostics--request (known)
  "Request the errors of KNOWN, whose text the server of this buffer has.
Return nil if the server does not support that."
  (gemini-companion-diagnostics--request-errors
   (caar known) (lambda (errors) (setf (nth 1 known) errors))))

(defun gemini-companion-diagnostics--current ()
  "Return a list of the errors of this buffer, or nil if they are not known."
  (cond ((gethash (gemini-companion-lookup-server (current-buffer))
                  gemini-companion-diagnostics--busy)
         nil)
        ((eql (car gemini-companion-diagnostics--last-report)
              (buffer-chars-modified-tick))
         (list (nth 1 gemini-companion-diagnostics--last-report)))
        ((not (gemini-companion-lookup-managed-p))
         (gemini-companion-diagnostics--checked-errors))))

;;;; What a language server knows

(defun gemini-companion-diagnostics--note-sent (_server method params)
  "Record which text of this buffer METHOD is about to send with PARAMS."
  (when-let* (((memq method '(:textDocument/didOpen :textDocument/didChange)))
              (file buffer-file-truename)
              (document (plist-get params :textDocument))
              ((equal (expand-file-name file)
                      (gemini-companion-lookup-path (plist-get document :uri)))))
    (when (eq method :textDocument/didOpen)
      ;; Eglot opens a file that a check has opened.
      (gemini-companion-diagnostics--end-of (expand-file-name file) 'version))
    (setq gemini-companion-diagnostics--sent
          (cons (plist-get document :version) (buffer-chars-modified-tick)))))

;; The private names of Eglot: it has no public ones for these.  Without them,
;; the errors in visited files are not known, and none are reported.

(defun gemini-companion-diagnostics--sync ()
  "Send the server the text of this buffer, if it does not have it yet.
Eglot itself waits until Emacs is idle."
  (when (gemini-companion-lookup-managed-p)
    ;; In a narrowed buffer, Eglot fails for a change elsewhere.
    (save-restriction
      (widen)
      (gemini-companion-lookup-eglot 'eglot--signal-textDocument/didChange))))

(defun gemini-companion-diagnostics--reopen (before after)
  "Open the file of this buffer again if BEFORE and AFTER include other files.
Until clangd has read them, it reports what the previous ones make of the text."
  (cl-flet ((includes (text)
              (cl-loop with at = 0
                       while (string-match "^[ \t]*#[ \t]*include.*$" text at)
                       do (setq at (match-end 0))
                       collect (match-string 0 text))))
    (unless (equal (includes before) (includes after))
      (setq gemini-companion-diagnostics--last-report '(nil nil 0))
      (gemini-companion-lookup-eglot 'eglot--signal-textDocument/didClose)
      (gemini-companion-lookup-eglot 'eglot--signal-textDocument/didOpen))))

(defun gemini-companion-diagnostics--command-p (regexp)
  (seq-some (apply-partially #'string-match-p regexp)
            (gemini-companion-lookup-eglot
             'eglot-server-capable :executeCommandProvider :commands)))

(defun gemini-companion-diagnostics--error-requests (path)
  "Return the requests for the errors in the file PATH.
Return nil if this buffer has no server, or one that does not support any."
  (cond
   ((not (gemini-companion-lookup-server (current-buffer))) nil)
   ((or (gemini-companion-lookup-eglot 'eglot-server-capable :diagnosticProvider)
        ;; Pyright publishes a version with errors of the text before, and does
        ;; not offer the request to clients that do not announce it.
        (gemini-companion-diagnostics--command-p "pyright\\.createtypestub\\'"))
    `((:textDocument/diagnostic
       :textDocument (:uri ,(gemini-companion-lookup-uri path)))))
   ;; This server publishes errors bit by bit.
   ((gemini-companion-diagnostics--command-p "\\`typescript\\.tsserverRequest\\'")
    (mapcar (lambda (command)
              `(:workspace/executeCommand
                :command "typescript.tsserverRequest"
                :arguments [,command (:file ,path)]))
            '("syntacticDiagnosticsSync" "semanticDiagnosticsSync")))))

(defun gemini-companion-diagnostics--request-errors (file done)
  "Request the errors in FILE of the server of this buffer, for DONE.
Return nil if the server does not support that."
  (when-let* ((requests (gemini-companion-diagnostics--error-requests file)))
    (gemini-companion-lookup-request
     (gemini-companion-lookup-server (current-buffer)) requests
     (lambda (results)
       (unless (assq 'error results)
         (cl-loop
          for result in results
          append (gemini-companion-diagnostics--errors (plist-get result :items))
          into errors
          append (cl-loop for found across (plist-get result :body)
                          for start = (plist-get found :start)
                          when (equal "error" (plist-get found :category))
                          collect (list (plist-get start :line)
                                        (plist-get found :text)
                                        "typescript"))
          into errors
          finally (funcall done errors)))))
    t))

(defun gemini-companion-diagnostics--errors (diagnostics)
  "Return the errors among the DIAGNOSTICS of a language server, a vector."
  (cl-loop for diagnostic across diagnostics
           ;; If it names no severity, the client decides.
           when (and (memq (plist-get diagnostic :severity) '(nil 1))
                     ;; The end of a list, not an error.
                     (not (equal "fatal_too_many_errors"
                                 (plist-get diagnostic :code))))
           collect (list (1+ (plist-get (plist-get (plist-get diagnostic :range)
                                                   :start)
                                        :line))
                         (plist-get diagnostic :message)
                         (plist-get diagnostic :source))))

;;;; Other files

(defconst gemini-companion-diagnostics--definition
  (concat "\\_<\\(?:def\\|class\\|func\\|function\\|fn\\|type\\|struct\\|enum\\|"
          "interface\\|trait\\|module\\|const\\|let\\|var\\|val\\|#define\\)[ \t]+"
          ;; The receiver of a method in Go.
          "\\(?:([^)\n]*)[ \t]*\\)?\\(?1:[[:alpha:]_][[:alnum:]_]*\\).*$"
          "\\|^\\(?1:[[:alpha:]_][[:alnum:]_]*\\)[ \t]*[:=].*$"
          ;; C, with a bound for lines of a hundred kilobytes.
          "\\|^[[:alpha:]_][[:alnum:]_ \t*]\\{0,80\\}[ \t*]"
          "\\(?1:[[:alpha:]_][[:alnum:]_]*\\)(.*$")
  "Regexp for a line that defines a name, which is its group 1.")

(defun gemini-companion-diagnostics--changed-names (before after)
  "Return a regexp for the names whose definitions in BEFORE are not in AFTER.
Return nil if there are none."
  (let ((case-fold-search nil)
        (kept (make-hash-table :test #'equal))
        (room 65536) ; more would take longer than Emacs may block
        names)
    (dolist (line (gemini-companion-text-lines after))
      (puthash line t kept))
    (with-syntax-table (standard-syntax-table)
      (dolist (line (gemini-companion-text-lines before))
        (when (and (not (gethash line kept))
                   (< 0 (cl-decf room (length line)))
                   (string-match gemini-companion-diagnostics--definition line))
          (push (match-string 1 line) names))))
    (and names (regexp-opt names 'symbols))))

(defun gemini-companion-diagnostics--find-others (file server names)
  "Return the buffers of SERVER that have one of NAMES, a regexp.
The buffer that visits FILE is omitted."
  (seq-filter
   (lambda (buffer)
     (with-current-buffer buffer
       (and buffer-file-name
            (eq server (gemini-companion-lookup-server buffer))
            (gemini-companion-diagnostics--current)
            (let ((case-fold-search nil))
              (string-match-p names (gemini-companion-text-of-buffer))))))
   (remq (gemini-companion-lookup-buffer file) (buffer-list))))

(defun gemini-companion-diagnostics--keep-reports ()
  "Remember the last report about each buffer, as a text is replaced.
A quick server reports about the next text before the check of it begins."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (setq gemini-companion-diagnostics--earlier-report
            gemini-companion-diagnostics--last-report))))

(defun gemini-companion-diagnostics--ask-others (check)
  "Make the server of CHECK report about the other buffers.
Request the errors if it supports that."
  (let-alist check
    ;; Some servers check other files when a file is saved; clangd finds more in
    ;; those that include a header than have a changed name.
    (when (or .others (and .server (string-match-p "\\.h[^/.]*\\'" .file)))
      (jsonrpc-notify
       .server :textDocument/didSave
       `(:textDocument (:uri ,(gemini-companion-lookup-uri .file)))))
    (dolist (buffer .others)
      (with-current-buffer buffer
        (let ((tick (buffer-chars-modified-tick)))
          (when (gemini-companion-diagnostics--request-errors
                 (expand-file-name buffer-file-truename)
                 (lambda (errors)
                   (when (buffer-live-p buffer)
                     (with-current-buffer buffer
                       (setq gemini-companion-diagnostics--last-report
                             (list tick errors))))))
            ;; The server may have published a part of them.
            (setq gemini-companion-diagnostics--last-report
                  gemini-companion-diagnostics--earlier-report)))))))

(defun gemini-companion-diagnostics--new-in-other (buffer names)
  "Return the new errors of BUFFER that have one of NAMES, a regexp, or nil.
They or their lines have it.  The value is a list of the file, their
number, and the first one."
  (with-current-buffer buffer
    (pcase-let ((`(,tick ,old . ,_)
                 gemini-companion-diagnostics--earlier-report))
      (when-let* ((file (gemini-companion-text-true-name buffer-file-name))
                  ((eql tick (buffer-chars-modified-tick)))
                  ((gemini-companion-lookup-shared-p file))
                  (now (gemini-companion-diagnostics--current))
                  (text (gemini-companion-text-of-buffer))
                  (new (seq-filter
                        (pcase-lambda (`((,_ ,error . ,_) ,_ ,line))
                          (string-match-p names (concat error "\n" line)))
                        (gemini-companion-diagnostics--new
                         (car now) text old text))))
        (list file (length new) (caar new))))))

;;;; Life

(defun gemini-companion-diagnostics--before-revert ()
  "Remember the errors of this buffer, or request them."
  (gemini-companion-server-guarded 'errors
    (when (and buffer-file-truename (not (buffer-modified-p))
               (<= (buffer-size) gemini-companion-diagnostics--largest))
      (let ((file (expand-file-name buffer-file-truename))
            (text (gemini-companion-text-of-buffer))
            (errors (unless (seq-some
                             (lambda (check)
                               (memq (current-buffer)
                                     (alist-get 'others check)))
                             gemini-companion-diagnostics--checks)
                      (gemini-companion-diagnostics--current))))
        (gemini-companion-diagnostics--keep-reports)
        (when (or errors (gemini-companion-diagnostics--error-requests file))
          (gemini-companion-diagnostics--sync)
          (let ((known (gemini-companion-diagnostics--expect file text)))
            (unless (gemini-companion-diagnostics--request known)
              (setf (nth 1 known) (car errors)))))))
    (setq gemini-companion-diagnostics--last-report
          `(nil nil ,(nth 2 (or gemini-companion-diagnostics--last-report
                                '(nil nil 0)))))))

(defun gemini-companion-diagnostics--managed ()
  "End the check of this file, which Eglot has opened or closed."
  (when (or gemini-companion-diagnostics--checks
            (not (gemini-companion-lookup-managed-p)))
    (setq gemini-companion-diagnostics--last-report '(nil nil 0)))
  (when buffer-file-truename
    (gemini-companion-diagnostics--end-of (expand-file-name buffer-file-truename))))

(defconst gemini-companion-diagnostics--hooks
  '((eglot-managed-mode-hook . gemini-companion-diagnostics--managed)
    (flymake-diagnostic-functions . gemini-companion-diagnostics--begins)
    (flycheck-before-syntax-check-hook . gemini-companion-diagnostics--begins)
    (flycheck-after-syntax-check-hook . gemini-companion-diagnostics--flycheck-ended)
    (before-revert-hook . gemini-companion-diagnostics--before-revert))
  "Functions that are on hooks while edits are checked.")

(defconst gemini-companion-diagnostics--advice
  '((eglot-handle-notification :after gemini-companion-diagnostics--notified)
    (jsonrpc-notify :before gemini-companion-diagnostics--note-sent))
  "Advice for functions of Eglot and jsonrpc, which may be loaded later.")

(defun gemini-companion-diagnostics-start ()
  "Start keeping the errors of visited files."
  (dolist (advice gemini-companion-diagnostics--advice)
    (apply #'advice-add advice))
  (pcase-dolist (`(,hook . ,function) gemini-companion-diagnostics--hooks)
    (add-hook hook function)))

(defun gemini-companion-diagnostics-stop ()
  "End each check, and keep no errors."
  (mapc (lambda (check) (gemini-companion-diagnostics--end check nil))
        gemini-companion-diagnostics--checks)
  (pcase-dolist (`(,hook . ,function) gemini-companion-diagnostics--hooks)
    (remove-hook hook function))
  (pcase-dolist (`(,name ,_ ,function) gemini-companion-diagnostics--advice)
    (advice-remove name function))
  (clrhash gemini-companion-diagnostics--busy)
  (setq gemini-companion-diagnostics--known nil)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (mapc #'kill-local-variable
            '(gemini-companion-diagnostics--begun
              gemini-companion-diagnostics--last-report
              gemini-companion-diagnostics--sent
              gemini-companion-diagnostics--earlier-report)))))

(provide 'gemini-companion-diagnostics)
;;; gemini-companion-diagnostics.el ends here
