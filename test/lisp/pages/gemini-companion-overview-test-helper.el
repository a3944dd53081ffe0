;;; gemini-companion-overview-test-helper.el --- The overview in tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-changes-test-helper)
(require 'gemini-companion-overview)
(eval-and-compile
  (when (gemini-companion-part-load 'unmarked)
    (require 'gemini-companion-unmarked-test-helper)))

(defmacro gemini-companion-overview-test-with (files &rest body)
  "Run BODY in a directory with FILES, where the overview can be shown.
`session' is a CLI there.  No review is shown by itself, and a proposal is
accepted as soon as it is drawn."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-changes ,files
     (cl-letf ((gemini-companion-review-arrival 'notify)
               (gemini-companion-overview-busy-seconds 0)
               ;; A batch job displays nothing.
               ((symbol-function 'gemini-companion-overview-page-displayed-p) #'always))
       (unwind-protect
           (progn ,@body)
         (gemini-companion-part-stop 'overview)
         (gemini-companion-part-stop 'decision)))))

(defun gemini-companion-overview-test-rendered (&optional width)
  "Return the visible lines of the overview as they are displayed.
The right edge is at WIDTH columns, by default those of the window."
  (with-current-buffer "*gemini*"
    (let ((width (or width (window-width)))
          (lines nil))
      (save-excursion
        (goto-char (point-min))
        (while (not (eobp))
          (unless (invisible-p (point))
            (push (gemini-companion-overview-test-displayed width) lines))
          (forward-line)))
      (nreverse lines))))

(defun gemini-companion-overview-test-displayed (width)
  "Return the line at point as it is displayed in WIDTH columns."
  (let* ((prefix (get-text-property (point) 'line-prefix))
         (end (line-end-position))
         (edge (text-property-not-all (point) end 'display nil))
         (left (buffer-substring-no-properties (point) (or edge end)))
         (right (and edge
                     (buffer-substring-no-properties
                      (next-single-property-change edge 'display nil end) end))))
    (concat (and prefix (substring-no-properties prefix))
            left
            (when right
              (concat (make-string (max 1 (- width 1 (string-width left)
                                             (string-width right)))
                                   ?\s)
                      right)))))

(defun gemini-companion-overview-test-lines ()
  "Return the visible lines of the overview.
Lines of a diff have their sign and what is before that; columns of rows are
separated by two spaces, and times are 00:00."
  (with-current-buffer "*gemini*"
    (let ((lines nil))
      (save-excursion
        (goto-char (point-min))
        (while (not (eobp))
          (unless (invisible-p (point))
            (push (gemini-companion-overview-test-line) lines))
          (forward-line)))
      (nreverse lines))))

(defun gemini-companion-overview-test-line ()
  "Return the line at point, see `gemini-companion-overview-test-lines'."
  (let ((prefix (get-text-property (line-beginning-position) 'line-prefix))
        (text (buffer-substring-no-properties (line-beginning-position)
                                              (line-end-position))))
    (if (get-text-property (line-beginning-position) 'gemini-companion-overview-heading)
        (replace-regexp-in-string
         "[0-9][0-9]:[0-9][0-9]" "00:00"
         (replace-regexp-in-string "   +" "  " (string-trim text)))
      (concat (and prefix
                   (string-trim-left (substring-no-properties
                                      prefix (max 0 (- (length prefix) 2)))))
              text))))

(defun gemini-companion-overview-test-here ()
  "Return the line at point in the overview."
  (with-current-buffer "*gemini*"
    (gemini-companion-overview-test-line)))

(defun gemini-companion-overview-test-go-to-turn ()
  "Go to the row of the first turn in the overview, which is current."
  (goto-char (point-min))
  (while (not (eq 'turn (gemini-companion-overview-page-kind)))
    (forward-line)))

(defun gemini-companion-overview-test-go-to (regexp)
  "Go to the first visible line of the overview that matches REGEXP.
It is matched against the line as `gemini-companion-overview-test-lines' has
it."
  (with-current-buffer "*gemini*"
    (goto-char (point-min))
    (while (not (or (eobp)
                    (and (not (invisible-p (point)))
                         (string-match-p regexp (gemini-companion-overview-test-line)))))
      (forward-line))
    (when (eobp)
      (error "No line matches %s" regexp))
    (when (eq (current-buffer) (window-buffer))
      (set-window-point nil (point)))))

(defun gemini-companion-overview-test-keys (keys &optional answer)
  "Type KEYS in the overview, and return the last message.
If ANSWER is non-nil, it is the answer to each question: `yes', `no', or a
text."
  (let ((inhibit-message t))
    (cl-letf* ((asked nil)
               (y-or-n (lambda (prompt)
                         (push prompt asked)
                         (eq answer 'yes)))
               ((symbol-function 'y-or-n-p)
                (if answer y-or-n (symbol-function 'y-or-n-p)))
               ((symbol-function 'gemini-companion-choice-key)
                (if answer
                    (lambda (prompt _) (if (funcall y-or-n prompt) ?y ?n))
                  (symbol-function 'gemini-companion-choice-key)))
               ((symbol-function 'read-string)
                (if (stringp answer)
                    (lambda (&rest _) answer)
                  (symbol-function 'read-string))))
      (car (last (split-string
                  (ert-with-message-capture messages
                    (with-current-buffer "*gemini*"
                      (execute-kbd-macro (kbd keys)))
                    messages)
                  "\n" t))))))

(defun gemini-companion-overview-test-rows (&optional regexp)
  "Return the visible rows of the overview, or those that match REGEXP."
  (seq-filter (lambda (line)
                (and (string-match-p "\\`[▾▸]\\|\\`[A-Z]" line)
                     (or (null regexp) (string-match-p regexp line))))
              (gemini-companion-overview-test-lines)))

(defmacro gemini-companion-overview-test-with-turn (&rest body)
  "Run BODY on a turn that has changed the files a and b, with three changes."
  (declare (indent 0) (debug t))
  `(gemini-companion-overview-test-with
       `(("a" ,gemini-companion-test-lines) ("b" "B\n"))
     (gemini-companion-state-report session 'prompt "Do it")
     (gemini-companion-test-writes "a" "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" session)
     (gemini-companion-test-writes "b" "C\n" session)
     (gemini-companion-turn-page)
     ,@body))

(defmacro gemini-companion-overview-test-turns (session &rest script)
  "Let the CLI of SESSION follow SCRIPT, a list of (PROMPT (FILE TEXT)...).
All turns but the last one have ended."
  (declare (indent 1) (debug (form &rest (stringp &rest (form form)))))
  (macroexp-progn
   (cl-loop for ((prompt . writes) . more) on script
            append `((gemini-companion-state-report ,session 'prompt ,prompt)
                     ,@(cl-loop for (file text) in writes
                                collect `(gemini-companion-test-writes
                                          ,file ,text ,session))
                     ,@(and more
                            `((gemini-companion-state-report ,session 'end nil)))))))

(defun gemini-companion-overview-test-git (environ &rest arguments)
  "Return what git prints for ARGUMENTS with ENVIRON, variables."
  (let ((process-environment (append environ process-environment)))
    (with-temp-buffer
      (should (eql 0 (apply #'call-process "git" nil t nil arguments)))
      (string-trim (buffer-string)))))

(defun gemini-companion-overview-test-unmarked (session command names text)
  "Write TEXT to the files NAMES, and record that COMMAND of SESSION has done so."
  (let* ((environ (list (concat "GIT_DIR=" (expand-file-name ".store"))
                        (concat "GIT_WORK_TREE=" (expand-file-name ""))))
         (git (apply-partially #'gemini-companion-overview-test-git environ))
         (hash (apply-partially git "hash-object"))
         (snapshot (lambda ()
                     (apply git "add" "--" names)
                     (funcall git "write-tree"))))
    (funcall git "init" "-q")
    (let ((tree (funcall snapshot))
          (old (mapcar hash names)))
      (dolist (name names)
        (gemini-companion-text-write name text))
      (gemini-companion-unmarked-record
       (gemini-companion-unmarked-make
        (directory-file-name (file-truename default-directory))
        (cl-mapcar (lambda (name before)
                     (gemini-companion-unmarked-entry name before (funcall hash name)
                                                      #o100644 #o100644))
                   names old)
        (list tree (funcall snapshot)) environ nil nil nil session command)))))

(defmacro gemini-companion-overview-test-with-store (&rest body)
  "Evaluate BODY while a server has the store of `...-test-unmarked' here.
Until then, announcements are appended to `said', and do not hide messages."
  (declare (indent 0) (debug t))
  `(let ((said nil))
     (cl-letf (((symbol-function 'gemini-companion-idle-announce)
                (lambda (text) (cl-callf append said (list text)))))
       (gemini-companion-unmarked-test-with-server ".store"
         ,@body))))

(defun gemini-companion-overview-test-header ()
  "Return the header line of the overview, the current buffer."
  (eval (cadr header-line-format) t))

(provide 'gemini-companion-overview-test-helper)
;;; gemini-companion-overview-test-helper.el ends here
