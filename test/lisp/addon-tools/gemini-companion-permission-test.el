;;; gemini-companion-permission-test.el --- Tests of permissions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-overview-draw)
(require 'gemini-companion-permission-test-helper)

(ert-deftest gemini-companion-permission-is-shown-whole-and-as-it-is ()
  (gemini-companion-permission-test-with
    (let* ((command (concat "echo \u202eevil\u200b \u00a0# cafe\u0301 \t\r\u2800 ä 日本\n"
                            (make-string 5000 ?x) " if then fi \\u202e 100%"))
           (permission (gemini-companion-permission-test-ask
                        command "id"
                        '(arguments . [["description" "Do\nit"] ["deep" "{}"]])
                        '(partial . t))))
      (gemini-companion-request-show permission)
      (with-current-buffer (window-buffer)
        (dolist (text `("Shell" "Qwen Code (shop)" "/src/shop"
                        "  description: Do\\n\n    it" "  deep: {}" "Arguments: in the terminal"
                        ,(concat "echo \\u202Eevil\\u200B \\u00A0# cafe\\u0301 \\t\\r\\u2800 ä 日本\n"
                                 (make-string 5000 ?x)
                                 " if then fi \\u202e 100%")))
          (should (string-search text (buffer-string))))
        ;; An escape is distinguished from the same letters.
        (goto-char (point-min))
        (search-forward "\\u202E")
        (should (eq 'gemini-companion-escape (get-text-property (1- (point)) 'face)))
        (let ((case-fold-search nil))
          (search-forward "\\u202e"))
        (should-not (eq 'gemini-companion-escape
                        (get-text-property (1- (point)) 'face)))
        (should-not truncate-lines)
        (should-not bidi-display-reordering)))))

(defun gemini-companion-permission-test-shown (permission)
  "Return the lines of the buffer of PERMISSION, without the time."
  (gemini-companion-request-show permission)
  (with-current-buffer (window-buffer)
    (split-string (replace-regexp-in-string ", asked at [0-9:]+" "" (buffer-string))
                  "\n")))

(ert-deftest gemini-companion-permission-begins-with-what-runs ()
  (gemini-companion-permission-test-with
    (let ((lines (gemini-companion-permission-test-shown
                  (gemini-companion-permission-test-ask
                   "make\nmake install" "id"
                   '(arguments . [["description" "Do it"]])))))
      (should (equal '("make" "make install" "" "Arguments:" "  description: Do it"
                       "Tool: Shell" "CLI: Qwen Code (shop)" "Project: shop"
                       "Directory: /src/shop" "")
                     lines))
      (should (equal 'bold (get-text-property 0 'face (car lines))))
      (dolist (line (seq-remove #'string-empty-p (nthcdr 3 lines)))
        (should (memq 'shadow (ensure-list (get-text-property
                                            (1- (length line)) 'face line))))))
    ;; Of a tool without a command, the arguments are what runs.
    (let ((lines (gemini-companion-permission-test-shown
                  (gemini-companion-permission-test-ask
                   nil "id" '(tool . "mcp__shop__order")
                   '(arguments . [["count" "3"]])))))
      (should (equal '("mcp__shop__order" "" "Arguments:" "  count: 3" ""
                       "Tool: mcp__shop__order")
                     (seq-take lines 6)))
      (should (equal 'bold (get-text-property 0 'face (car lines))))
      (should-not (get-text-property 9 'face (nth 3 lines))))))

(ert-deftest gemini-companion-permission-has-no-line-of-a-cli-that-passes-for-ours ()
  (gemini-companion-permission-test-with
    (let ((lines (gemini-companion-permission-test-shown
                  (gemini-companion-permission-test-ask
                   nil "id" '(tool . "tool\nDirectory: /safe")
                   '(arguments . [["Directory" "/safe"]
                                  ["a" "b\nDirectory: /safe\n\nCLI: x"]
                                  ["c\nDirectory: /safe" "literal \\n"]])))))
      (should (equal '("Directory: /src/shop")
                     (seq-filter (apply-partially #'string-prefix-p "Directory")
                                 lines)))
      (should (equal '("tool\\nDirectory: /safe" "" "Arguments:"
                       "  Directory: /safe"
                       "  a: b\\n" "    Directory: /safe\\n" "    \\n" "    CLI: x"
                       "  c\\nDirectory: /safe: literal \\n")
                     (seq-take lines 9)))
      ;; Nor does the rest of a line that is wrapped.
      (should (get-text-property 4 'wrap-prefix (nth 3 lines))))))

(ert-deftest gemini-companion-permission-of-any-text-costs-no-time ()
  (pcase-dolist (`(,name . ,text)
                 `(("blanks" . ,(make-string 40000 ?\s))
                   ("quotes" . ,(make-string 40000 ?\"))
                   ("no width" . ,(make-string 300000 #x200B))
                   ("marks" . ,(concat "a" (make-string 300000 #x301)))
                   ("pairs" . ,(apply #'concat (make-list 100000 "a\u202e")))
                   ("newlines" . ,(make-string 300000 ?\n))))
    (dolist (slots `(() ((arguments . [["a" ,text]]) (command))
                     ((tool . ,text) (command))))
      (gemini-companion-permission-test-with
        (ert-info ((format "%s %S" name (mapcar #'car slots)))
          (let ((most gemini-companion-permission--largest)
                (length (length text))
                (input (apply #'gemini-companion-permission-test-input text slots))
                permission text)
            (should
             (< (car (benchmark-run
                      (setq permission
                            (gemini-companion-permission-ask
                             '(:client "qwen" :pids (12) :directory "/src/shop" :id "1")
                             input
                             (lambda (answer)
                               (push answer gemini-companion-permission-test-answers)))
                            permission (car (gemini-companion-permissions-open)))
                      (with-temp-buffer
                        (gemini-companion-request-insert permission)
                        (setq text (buffer-string)))
                      (dotimes (_ 100)
                        (gemini-companion-request-label permission))
                      (gemini-companion-request-notice permission)))
                4))
            (should (< (string-width (gemini-companion-request-label permission)) 300))
            (should (< (string-width (gemini-companion-request-notice permission)) 200))
            ;; What is not shown whole is not answered.
            (when (< most length)
              (should (equal '(nil) gemini-companion-permission-test-answers))
              (should (string-match-p "[0-9]+ more characters are not shown"
                                      text)))))))))

(ert-deftest gemini-companion-permission-with-countless-arguments-is-not-answered ()
  (gemini-companion-permission-test-with
    (gemini-companion-permission-test-ask
     "ls" "id" `(arguments . ,(make-vector 5000 ["" ""])))
    (should (equal '(nil) gemini-companion-permission-test-answers))))

(ert-deftest gemini-companion-permission-is-a-line-of-the-list ()
  (gemini-companion-permission-test-with
    (let ((permission (gemini-companion-permission-test-ask
                       (concat "rm -rf build && \u202emake\n" (make-string 40 ?\n)
                               "true")
                       "id")))
      (should (equal "asks  Shell  rm -rf build && \\u202Emake  +41 lines"
                     (substring-no-properties
                      (gemini-companion-request-label permission))))
      (should (gemini-companion-request-certain-p permission))
      (should (eq 'waiting (gemini-companion-session-state
                            gemini-companion-permission-test-session)))
      ;; It is asked in a terminal that is not in this Emacs.
      (let ((there (gemini-companion-permission-test-ask "ls")))
        (should (equal (list permission there) (gemini-companion-requests-certain)))
        (gemini-companion-request-show there)
        (should-not (gemini-companion-request-buffer there))
        (should (string-match-p "\\`asked  Shell  ls\\'"
                                (gemini-companion-request-label there)))
        ;; The row has the time once.
        (let ((row (cadr (gemini-companion-overview-row-rows
                          (car (gemini-companion-overview-rows nil))))))
          (should (eq there (gemini-companion-overview-row-request row)))
          (should (string-match-p
                   "\\`[^:]*asked  Shell  ls[^:]*[0-9]:[0-9][0-9]\\'"
                   (gemini-companion-overview-draw-heading row "" 80))))
        (should (equal (list permission) (gemini-companion-requests-certain)))))))

(ert-deftest gemini-companion-permission-is-allowed-by-one-key-after-a-look ()
  (gemini-companion-permission-test-with
    (let* ((permission (gemini-companion-permission-test-ask "make" "id"))
           (input (gemini-companion-permission-test-input "make")))
      (gemini-companion-permission-test-see permission)
      (gemini-companion-permission-test-type "C-c C-c")
      (should (equal `((:behavior "allow" :input ,(secure-hash 'sha256 input)))
                     gemini-companion-permission-test-answers))
      (should-not (gemini-companion-permissions-open))
      (should-not (gemini-companion-request-buffer permission))
      ;; A late end of it changes nothing.
      (gemini-companion-server-receive 'withdrawn "id" 'ended))))

(ert-deftest gemini-companion-permission-is-refused-with-a-reason ()
  (gemini-companion-permission-test-with
    (gemini-companion-permission-test-see
     (gemini-companion-permission-test-ask "make" "one"))
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) " use \"ninja\" ")))
      (gemini-companion-permission-test-type "R"))
    (should (equal " use \"ninja\" "
                   (plist-get (pop gemini-companion-permission-test-answers)
                              :message)))
    (let ((permission (gemini-companion-permission-test-ask "make" "two"))
          ;; A refusal need not be read to its end.
          (gemini-companion-permission-test-end 2))
      (gemini-companion-permission-test-see permission)
      (gemini-companion-permission-test-refused
        (cl-letf (((symbol-function 'read-string) (lambda (&rest _) " ")))
          (gemini-companion-permission-test-type "R")))
      (gemini-companion-permission-test-see permission)
      (gemini-companion-permission-test-type "r")
      (should (equal "deny" (plist-get (pop gemini-companion-permission-test-answers)
                                       :behavior))))))

(ert-deftest gemini-companion-permission-takes-no-key-that-was-meant-for-another ()
  (gemini-companion-permission-test-with
    (let ((permission (gemini-companion-permission-test-ask "make" "id")))
      ;; Displayed in another window.
      (gemini-companion-request-appear permission)
      (with-current-buffer (gemini-companion-request-buffer permission)
        (run-hook-with-args 'pre-redisplay-functions (get-buffer-window)))
      (gemini-companion-request-show permission)
      (set-buffer (window-buffer))
      (gemini-companion-permission-test-refused
        (gemini-companion-permission-test-type "C-c C-c")
        (gemini-companion-permission-test-type "r"))
      ;; Displayed before another window was selected.
      (gemini-companion-permission-test-see permission)
      (gemini-companion-permission-test-type "M-<")
      (other-window 1)
      (other-window -1)
      (gemini-companion-permission-test-refused
        (gemini-companion-permission-test-type "C-c C-c"))
      ;; A keyboard macro.
      (gemini-companion-permission-test-see permission)
      (gemini-companion-permission-test-refused
        (let ((executing-kbd-macro "\C-c\C-c"))
          (gemini-companion-permission-test-type "C-c C-c")))
      ;; Other keys are no answers.
      (dolist (key '("SPC" "RET" "C-m" "<return>" "y" "a" "TAB"))
        (should-not (memq (key-binding (kbd key))
                          '(gemini-companion-permission-allow
                            gemini-companion-permission-refuse)))))))

(ert-deftest gemini-companion-permission-is-allowed-once-each-part-was-displayed ()
  (gemini-companion-permission-test-with
    (let ((permission (gemini-companion-permission-test-ask
                       (concat (make-string 100 ?\n) "true") "id"))
          (gemini-companion-permission-test-end 40))
      (gemini-companion-permission-test-see permission)
      (gemini-companion-permission-test-refused
        (gemini-companion-permission-test-type "C-c C-c"))
      (should (= 40 (point) (window-start)))
      ;; Typed before that part is displayed.
      (gemini-companion-permission-test-refused
        (gemini-companion-permission-test-type "C-c C-c"))
      ;; The end, but not what is before that.
      (gemini-companion-permission-test-see permission)
      (set-window-start nil 80)
      (setq gemini-companion-permission-test-end nil)
      (gemini-companion-permission-test-draw)
      (gemini-companion-permission-test-refused
        (gemini-companion-permission-test-type "C-c C-c"))
      (should (= 40 (point)))
      (gemini-companion-permission-test-draw)
      (gemini-companion-permission-test-type "C-c C-c")
      (should (= 1 (length gemini-companion-permission-test-answers))))))

(ert-deftest gemini-companion-permission-is-given-back-to-the-terminal ()
  (gemini-companion-permission-test-with
    (cl-flet ((given-back-by (function)
                (let ((permission (gemini-companion-permission-test-ask "ls" "id")))
                  (gemini-companion-permission-test-see permission)
                  (funcall function)
                  (should (equal '(nil) gemini-companion-permission-test-answers))
                  ;; No key answers it any more.
                  (set-buffer (gemini-companion-request-buffer permission))
                  (gemini-companion-permission-test-draw)
                  (should-error (gemini-companion-permission-test-type "C-c C-c")
                                :type 'user-error)
                  (should (equal '(nil) gemini-companion-permission-test-answers))
                  (gemini-companion-permission-progressed
                   '(:client "qwen" :pids (11 12)))
                  (should-not (gemini-companion-permissions-open))
                  (setq gemini-companion-permission-test-answers nil))))
      (given-back-by (lambda () (gemini-companion-permission-test-type "RET")))
      (given-back-by (lambda ()
                       (gemini-companion-server-receive 'withdrawn "id" 'returned)))
      (given-back-by (lambda ()
                       (run-hooks 'gemini-companion-server-crash-hook)))
      (let ((gemini-companion-context-paused nil))
        (given-back-by #'gemini-companion-pause)
        ;; While sharing is paused, nothing is shown.
        (gemini-companion-permission-ask
         '(:client "qwen" :pids (12) :directory "/src/shop" :id "id")
         (gemini-companion-permission-test-input "ls")
         (lambda (answer) (push answer gemini-companion-permission-test-answers)))
        (should (equal '(nil) gemini-companion-permission-test-answers))
        (should-not (gemini-companion-permissions-open))))))

(ert-deftest gemini-companion-permission-of-an-excluded-project-is-not-shown ()
  (gemini-companion-permission-test-with
    (let ((gemini-companion-excluded '("/src/shop/")))
      (gemini-companion-privacy-refresh)
      (gemini-companion-permission-test-ask "ls" "id")
      (should (equal '(nil) gemini-companion-permission-test-answers))
      (should-not (gemini-companion-permissions-open)))
    (gemini-companion-privacy-refresh)))

(ert-deftest gemini-companion-permission-answered-does-not-select-another ()
  (dolist (key '("r" "q"))
    (gemini-companion-permission-test-with
      (delete-other-windows)
      (let* ((scratch (switch-to-buffer "*scratch*"))
             (one (gemini-companion-permission-test-ask "one" "1"))
             (two (gemini-companion-permission-test-ask "two" "2"))
             (three (gemini-companion-permission-test-ask "three" "3")))
        ;; All have been in the same window, which another one would show again.
        (dolist (permission (list one two three two three one))
          (gemini-companion-permission-test-see permission))
        (gemini-companion-permission-test-type key)
        (should (eq scratch (window-buffer)))
        (should (equal (if (equal key "r") (list two three) (list one two three))
                       (gemini-companion-permissions-open)))
        ;; Nor if the other one is in a window of its own.
        (gemini-companion-permission-test-see two)
        (let ((window (split-window)))
          (set-window-buffer window (gemini-companion-request-buffer three))
          (gemini-companion-permission-test-type key))
        (should (eq scratch (window-buffer)))))))

(ert-deftest gemini-companion-permission-answered-leaves-no-key-to-a-text ()
  (gemini-companion-permission-test-with
    (let ((discarded nil))
      (gemini-companion-permission-test-see
       (gemini-companion-permission-test-ask "make" "id"))
      (cl-letf (((symbol-function 'input-pending-p) #'always)
                ((symbol-function 'discard-input) (lambda () (setq discarded t))))
        (gemini-companion-permission-test-type "r"))
      (should discarded))))

(ert-deftest gemini-companion-permission-that-ends-leaves-the-selected-window ()
  (gemini-companion-permission-test-with
    (delete-other-windows)
    (let* ((file (switch-to-buffer "*scratch*"))
           (window (selected-window))
           (one (gemini-companion-permission-test-ask "one" "1"))
           (two (gemini-companion-permission-test-ask "two" "2")))
      ;; Quitting the window of the first selects the one that was selected then.
      (gemini-companion-request-appear one)
      (should (eq window (selected-window)))
      (with-selected-window (split-window nil nil 'left)
        (switch-to-buffer (gemini-companion-permission--get-buffer two)))
      (gemini-companion-permission-test-see two)
      (should-not (eq window (selected-window)))
      (gemini-companion-server-receive 'withdrawn "1" 'ended)
      (should-not (gemini-companion-request-buffer one))
      (should (eq (window-buffer) (gemini-companion-request-buffer two)))
      (should (eq file (window-buffer window)))
      (should (= 2 (length (window-list)))))))

(ert-deftest gemini-companion-permission-after-several-leaves-the-windows-as-they-were ()
  (dolist (key '("r" "q"))
    (gemini-companion-permission-test-with
      (delete-other-windows)
      (let ((file (switch-to-buffer "*scratch*"))
            (permissions (mapcar (lambda (id)
                                   (gemini-companion-permission-test-ask id id))
                                 '("1" "2" "3"))))
        (gemini-companion-request-appear (car permissions))
        (should (= 2 (length (window-list))))
        ;; The next one is shown in the window of the previous one.
        (dolist (permission permissions)
          (gemini-companion-permission-test-see permission)
          (should (= 2 (length (window-list)))))
        (gemini-companion-permission-test-type key)
        (should (equal (list file) (mapcar #'window-buffer (window-list))))))))

(ert-deftest gemini-companion-permission-that-ended-goes-once-it-is-not-selected ()
  (gemini-companion-permission-test-with
    (delete-other-windows)
    (let ((file (switch-to-buffer "*scratch*"))
          (permission (gemini-companion-permission-test-ask "ls" "id")))
      (gemini-companion-permission-test-see permission)
      (gemini-companion-server-receive 'withdrawn "id" 'ended)
      (run-hooks 'window-state-change-hook)
      (gemini-companion-permission-test-run-timers)
      (should (eq (window-buffer) (gemini-companion-request-buffer permission)))
      (other-window 1)
      (run-hooks 'window-state-change-hook)
      (gemini-companion-permission-test-run-timers)
      (should-not (gemini-companion-request-buffer permission))
      (should (equal (list file) (mapcar #'window-buffer (window-list)))))))

(ert-deftest gemini-companion-permission-appears-when-no-other-is-displayed ()
  (gemini-companion-permission-test-with
    (delete-other-windows)
    (set-buffer (window-buffer))
    (let ((one (gemini-companion-permission-test-ask "one" "1"))
          (two (gemini-companion-permission-test-ask "two" "2")))
      (should (gemini-companion-request-waits-to-appear-p one))
      (should (gemini-companion-request-waits-to-appear-p two))
      (gemini-companion-request-appear one)
      (should (get-buffer-window (gemini-companion-request-buffer one)))
      (should-not (gemini-companion-request-waits-to-appear-p two))
      (gemini-companion-server-receive 'withdrawn "1" 'ended)
      (should (gemini-companion-request-waits-to-appear-p two)))))

(ert-deftest gemini-companion-permission-that-ended-takes-no-answer ()
  (gemini-companion-permission-test-with
    (let ((permission (gemini-companion-permission-test-ask "ls" "id")))
      (gemini-companion-permission-test-see permission)
      (gemini-companion-server-receive 'withdrawn "id" 'ended)
      (should-not (gemini-companion-permissions-open))
      ;; The selected buffer stays, as a key would go to another one.
      (should (eq (window-buffer) (gemini-companion-request-buffer permission)))
      (gemini-companion-permission-test-draw)
      (gemini-companion-permission-test-refused
        (gemini-companion-permission-test-type "C-c C-c"))
      (gemini-companion-permission-test-type "q")
      (should-not (gemini-companion-request-buffer permission)))))

(ert-deftest gemini-companion-permission-in-the-terminal-ends-with-its-next-event ()
  (gemini-companion-permission-test-with
    (let ((first (gemini-companion-permission-test-ask "ls"))
          (second (gemini-companion-permission-test-ask "pwd")))
      (should (equal '(nil nil) gemini-companion-permission-test-answers))
      ;; Both are of one answer of the model.
      (should (equal (list first second) (gemini-companion-permissions-open)))
      (setf (gemini-companion-permission-since first) (- (float-time) 10)
            (gemini-companion-permission-since second) (- (float-time) 10))
      (let ((third (gemini-companion-permission-test-ask "date")))
        (should (equal (list third) (gemini-companion-permissions-open)))
        (gemini-companion-test-set-sessions nil)
        (should-not (gemini-companion-permissions-open)))
      ;; A CLI that is linked and not connected.
      (should (equal "linked-12"
                     (gemini-companion-session-id
                      (gemini-companion-permission-session
                       (gemini-companion-permission-test-ask "ls")))))
      ;; A tool that runs has been allowed, and no other one.
      (gemini-companion-permission-end-of-tool '(:client "qwen" :pids (11 12)) "rename")
      (should (gemini-companion-permissions-open))
      (gemini-companion-permission-end-of-tool
       '(:client "qwen" :pids (11 12))
       (gemini-companion-permission-tool (car (gemini-companion-permissions-open))))
      (should-not (gemini-companion-permissions-open))
      (gemini-companion-permission-test-ask "ls")
      (gemini-companion-permission-progressed '(:client "qwen" :pids (11 12)))
      (should-not (gemini-companion-permissions-open)))))

(ert-deftest gemini-companion-permission-of-an-edit-is-its-review ()
  (gemini-companion-test-with-directory '(("a" "old\n") ("b" "old\n") ("c" "old\n"))
    (let* ((session
            (gemini-companion-session-make :id "one" :client "copilot" :pid 12
                                           :directory default-directory))
           (other (gemini-companion-session-make
                   :id "two" :client "copilot" :pid 13 :directory "/src/bank"))
           (ask (lambda (file)
                  (gemini-companion-permission-ask
                   `(:client "copilot" :pids (11 12) :directory ,default-directory)
                   (gemini-companion-permission-test-input
                    nil '(tool . "Edit") `(file . ,(expand-file-name file)))
                   #'ignore)))
           (rows (lambda ()
                   (mapcar (lambda (request)
                             (if (gemini-companion-edit-p request)
                                 'review
                               (gemini-companion-request-kind request)))
                           (gemini-companion-requests)))))
      (gemini-companion-test-with-parts '(state edit proposal permission) session
        (cl-letf (((symbol-function 'gemini-companion-proposal--send) #'ignore))
          ;; The review comes after the question, or before it.
          (funcall ask "a")
          (should (equal '(permission) (funcall rows)))
          (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
          (should (equal '(review) (funcall rows)))
          (gemini-companion-edit-accept (car (gemini-companion-edits-open)))
          (should-not (funcall rows))
          (gemini-companion-proposal-open 2 session (expand-file-name "b") "new\n")
          (funcall ask "b")
          (should (equal '(review) (funcall rows)))
          ;; The answer in the terminal closes the review.
          (gemini-companion-proposal-close (car (gemini-companion-edits-open)) 'closed)
          (should-not (funcall rows))
          ;; It was accepted automatically before the question arrived.
          (funcall ask "b")
          (should-not (funcall rows))
          ;; A review of another CLI is no answer to it.
          (gemini-companion-proposal-open 3 other (expand-file-name "c") "new\n")
          (funcall ask "c")
          (should (equal '(review permission) (funcall rows))))))))

(ert-deftest gemini-companion-permission-in-the-terminal-follows-its-title ()
  (gemini-companion-permission-test-with
    (let ((title 'working))
      (gemini-companion-permission-test-ask "ls")
      (cl-letf (((symbol-function 'gemini-companion-state-titled)
                 (lambda (_) title)))
        (cl-flet ((show (meaning)
                    (setq title meaning)
                    (run-hook-with-args 'gemini-companion-state-title-functions
                                        gemini-companion-permission-test-session
                                        meaning)))
          (show 'waiting)
          ;; For a moment, between two questions.
          (show 'working)
          (show 'waiting)
          (gemini-companion-permission-test-run-timers)
          (should (gemini-companion-permissions-open))
          (show 'working)
          (gemini-companion-permission-test-run-timers)
          (should-not (gemini-companion-permissions-open)))))))

(ert-deftest gemini-companion-permission-of-an-unknown-process-is-not-shown ()
  (gemini-companion-permission-test-with
    ;; The hook has exited, and the shell of a CLI that has is a child of process 1.
    (dolist (pids '(() (11 1)))
      (gemini-companion-permission-ask
       `(:client "qwen" :pids ,pids :directory "/src/shop" :id "id")
       (gemini-companion-permission-test-input "ls")
       (lambda (answer) (push answer gemini-companion-permission-test-answers)))
      (should (equal '(nil) gemini-companion-permission-test-answers))
      (should-not (gemini-companion-permissions-open))
      (gemini-companion-permission-progressed `(:client "qwen" :pids ,pids))
      (setq gemini-companion-permission-test-answers nil))))

(defmacro gemini-companion-permission-test-linked (&rest body)
  "Evaluate BODY while a linked CLI that is not connected asks in a terminal.
It is the `process', and asks the `permission'."
  (declare (indent 0) (debug t))
  `(gemini-companion-permission-test-with
     (let* ((terminal (generate-new-buffer "terminal"))
            (process (make-process :name "cli" :buffer terminal :noquery t
                                   :command '("cat") :connection-type 'pty))
            (permission
             (progn
               (gemini-companion-permission-ask
                (list :client "gemini" :pids (list 1 (process-id process) 1)
                      :directory "/src/shop")
                (gemini-companion-permission-test-input "ls") #'ignore)
               (car (gemini-companion-permissions-open)))))
       (ignore permission)
       (unwind-protect
           (progn ,@body)
         (delete-process process)
         (kill-buffer terminal)))))

(ert-deftest gemini-companion-permission-ends-with-a-cli-that-never-connected ()
  (gemini-companion-permission-test-linked
    (gemini-companion-permission-test-run-timers)
    (should (equal (list permission) (gemini-companion-permissions-open)))
    (kill-process process)
    (while (process-live-p process)
      (accept-process-output process 1))
    (gemini-companion-permission-test-run-timers)
    (should-not (gemini-companion-permissions-open))
    ;; Nothing is looked for any more.
    (should-not (seq-some (lambda (timer)
                            (eq (timer--function timer)
                                #'gemini-companion-permission--poll-ends))
                          timer-list))))

(ert-deftest gemini-companion-permission-ends-when-a-cli-that-is-not-connected-is-ready ()
  (gemini-companion-permission-test-linked
    (gemini-companion-state-set-title process "✋  Action Required (shop)")
    (gemini-companion-permission-test-run-timers)
    (should (gemini-companion-permissions-open))
    ;; Escape.
    (gemini-companion-state-set-title process "◇  Ready (shop)")
    (gemini-companion-permission-test-run-timers)
    (should-not (gemini-companion-permissions-open))))

;; Qwen Code refuses it without a question, and its title has shown nothing.
(ert-deftest gemini-companion-permission-of-an-agent-in-the-background-ends ()
  (gemini-companion-permission-test-linked
   (gemini-companion-test-set-sessions
    (list (gemini-companion-session-make
           :id "two" :client "gemini" :pid (process-id process)
           :directory "/src/shop")))
    (gemini-companion-state-set-title process "◇  Ready (shop)")
    (gemini-companion-permission-ask
     (list :client "gemini" :pids (list 1 (process-id process))
           :directory "/src/shop")
     (gemini-companion-permission-test-input "pwd") #'ignore)
    (let ((permission (car (last (gemini-companion-permissions-open)))))
      (gemini-companion-permission-test-run-timers)
      (should (memq permission (gemini-companion-permissions-open)))
      (cl-decf (gemini-companion-permission-since permission) 10)
      (gemini-companion-permission-test-run-timers)
      (should-not (memq permission (gemini-companion-permissions-open))))))

;; In the terminal of the CLI, RET is a yes to the dialog that is shown.
(ert-deftest gemini-companion-permission-in-the-terminal-leads-there ()
  (gemini-companion-permission-test-with
    (let ((permission (gemini-companion-permission-test-ask "rm -rf \u202ebuild")))
      (with-temp-buffer
        (gemini-companion-request-insert permission)
        (should (string-prefix-p "rm -rf \\u202Ebuild\n" (buffer-string))))
      (with-temp-buffer
        (let ((terminal (current-buffer))
              (other (switch-to-buffer "*scratch*")))
          (cl-letf (((symbol-function 'gemini-companion-session-terminal)
                     (lambda (_) terminal)))
            (should-error (gemini-companion-request-answer permission 'allow)
                          :type 'user-error)
            (should (eq other (window-buffer)))
            (should (equal (list permission) (gemini-companion-requests-certain)))
            (gemini-companion-request-show permission)
            (should (eq terminal (window-buffer)))
            (should-not (gemini-companion-requests-certain))
            (should (equal (list permission) (gemini-companion-requests)))))))))

(ert-deftest gemini-companion-permission-is-seen-once-its-terminal-was-visited ()
  (gemini-companion-permission-test-with
    (let ((there (gemini-companion-permission-test-ask "ls"))
          (here (gemini-companion-permission-test-ask "pwd" "id")))
      (with-temp-buffer
        (let ((terminal (current-buffer)))
          (cl-letf (((symbol-function 'gemini-companion-session-terminal)
                     (lambda (_) terminal)))
            (cl-flet ((visit (buffer)
                        (switch-to-buffer buffer)
                        (run-hooks 'window-state-change-hook)
                        (gemini-companion-permission-test-run-timers)))
              (visit "*scratch*")
              (should (equal (list there here) (gemini-companion-requests-certain)))
              (visit terminal)
              (should (equal (list here) (gemini-companion-requests-certain))))))))))

(ert-deftest gemini-companion-permission-names-the-keys-that-answer-first ()
  (gemini-companion-permission-test-with
    (let ((permission (gemini-companion-permission-test-ask "ls" "id")))
      (gemini-companion-request-show permission)
      (with-current-buffer (window-buffer)
        (should (equal " Qwen Code (shop)  C-c C-c allow  r refuse  R reason  \
RET terminal  q close"
                       (eval (cadr header-line-format) t)))))))

(provide 'gemini-companion-permission-test)
;;; gemini-companion-permission-test.el ends here
