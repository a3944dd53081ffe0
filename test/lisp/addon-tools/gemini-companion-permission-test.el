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
          (let ((most gemini-companion-permission-largest)
                (length (length text))
                (input (apply #'gemini-companion-permission-test-input text slots))
                permission text)
            (should
             (< (gemini-companion-test-seconds
                  (setq permission
                        (gemini-companion-permission-ask
                         '(:client "qwen" :pids (12) :directory "/src/shop" :id "1")
                         input
                         (lambda (answer)
                           (push answer gemini-companion-permission-test-answers)))
                        permission (car (gemini-companion-requests)))
                  (with-temp-buffer
                    (gemini-companion-request-insert permission)
                    (setq text (buffer-string)))
                  (dotimes (_ 100)
                    (gemini-companion-request-label permission))
                  (gemini-companion-request-notice permission))
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
      ;; The row has the time once.
      (let ((row (car (gemini-companion-overview-row-rows
                       (car (gemini-companion-overview-rows nil))))))
        (should (eq permission (gemini-companion-overview-row-request row)))
        (should (string-match-p
                 "\\`[^:]*asks  +Shell  rm[^:]*[0-9]:[0-9][0-9]\\'"
                 (gemini-companion-overview-draw-heading row "" 80)))))))

(defun gemini-companion-permission-test-labels ()
  "Return the labels of the open requests."
  (mapcar (lambda (request)
            (substring-no-properties (gemini-companion-request-label request)))
          (gemini-companion-requests)))

(ert-deftest gemini-companion-permission-in-the-terminal-is-a-question-of-the-state ()
  (gemini-companion-permission-test-with
    (cl-flet ((report (event)
                (gemini-companion-state-report
                 gemini-companion-permission-test-session event nil)))
      (should-not (gemini-companion-permission-test-ask "rm -rf \u202ebuild"))
      (should (equal '("asks  Shell  rm -rf \\u202Ebuild")
                     (gemini-companion-permission-test-labels)))
      (let ((question (car (gemini-companion-requests))))
        (with-temp-buffer
          (gemini-companion-request-insert question)
          (should (string-prefix-p "rm -rf \\u202Ebuild\n" (buffer-string))))
        (should-error (gemini-companion-request-answer question 'allow)
                      :type 'user-error))
      ;; Another one of the same answer of the model.
      (gemini-companion-permission-test-ask "pwd")
      (should (equal '("asks  Shell  rm -rf \\u202Ebuild  +1 more")
                     (gemini-companion-permission-test-labels)))
      (with-temp-buffer
        (gemini-companion-request-insert (car (gemini-companion-requests)))
        (should (string-search "pwd\n" (buffer-string))))
      ;; Any further event of the CLI ends it.
      (dolist (event '(progress end prompt edit))
        (report event)
        (should-not (gemini-companion-requests))
        (gemini-companion-permission-test-ask event)
        (should (equal (list (format "asks  Shell  %s" event))
                       (gemini-companion-permission-test-labels))))
      (gemini-companion-test-set-sessions nil)
      (should-not (gemini-companion-requests)))))

(ert-deftest gemini-companion-permission-in-the-terminal-follows-its-title ()
  (gemini-companion-permission-test-with
    (let* ((buffer (generate-new-buffer "terminal"))
           (process (make-process :name "cli" :buffer buffer :noquery t
                                  :command '("cat") :connection-type 'pty)))
      (unwind-protect
          (cl-flet ((shows (title labels)
                      (gemini-companion-state-set-title process title)
                      (should (equal labels
                                     (gemini-companion-permission-test-labels)))))
            (gemini-companion-test-set-sessions
             (list (gemini-companion-session-make
                    :id "two" :client "gemini" :pid (process-id process)
                    :directory "/src/shop")))
            (shows "✦  Working… (shop)" nil)
            ;; The hook returns before the question.
            (gemini-companion-permission-ask
             (list :client "gemini" :pids (list 1 (process-id process))
                   :directory "/src/shop")
             (gemini-companion-permission-test-input "ls") #'ignore)
            (should-not (gemini-companion-requests))
            (shows "✋  Action Required (shop)" '("asks  Shell  ls"))
            (shows "✦  Working… (shop)" nil)
            (shows "✋  Action Required (shop)" '("asks in its terminal")))
        (delete-process process)
        (kill-buffer buffer)))))

(ert-deftest gemini-companion-permission-is-allowed-by-one-key-after-a-look ()
  (gemini-companion-permission-test-with
    (let* ((permission (gemini-companion-permission-test-ask "make" "id"))
           (input (gemini-companion-permission-test-input "make")))
      (gemini-companion-permission-test-see permission)
      (gemini-companion-permission-test-type "C-c C-c")
      (should (equal `((:behavior "allow" :input ,(secure-hash 'sha256 input)))
                     gemini-companion-permission-test-answers))
      (should-not (gemini-companion-permission-test-open))
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
      ;; Typed before it was displayed, and read after that.
      (let ((unread-command-events (list ?\C-c)))
        (gemini-companion-permission-test-draw))
      (gemini-companion-permission-test-refused
        (gemini-companion-permission-test-type "C-c C-c"))
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
                  (should-not (gemini-companion-permission-test-open))
                  (should (equal '("asks  Shell  ls")
                                 (gemini-companion-permission-test-labels)))
                  (gemini-companion-state-report
                   gemini-companion-permission-test-session 'progress nil)
                  (should-not (gemini-companion-requests))
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
        (should-not (gemini-companion-permission-test-open))))))

(ert-deftest gemini-companion-permission-of-an-excluded-project-is-not-shown ()
  (gemini-companion-permission-test-with
    (let ((gemini-companion-excluded '("/src/shop/")))
      (gemini-companion-privacy-refresh)
      (gemini-companion-permission-test-ask "ls" "id")
      (should (equal '(nil) gemini-companion-permission-test-answers))
      (should-not (gemini-companion-permission-test-open)))
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
                       (gemini-companion-permission-test-open)))
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
      (should-not (gemini-companion-permission-test-open))
      ;; The selected buffer stays, as a key would go to another one.
      (should (eq (window-buffer) (gemini-companion-request-buffer permission)))
      (gemini-companion-permission-test-draw)
      (gemini-companion-permission-test-refused
        (gemini-companion-permission-test-type "C-c C-c"))
      (gemini-companion-permission-test-type "q")
      (should-not (gemini-companion-request-buffer permission)))))

(ert-deftest gemini-companion-permission-of-an-unknown-process-is-not-shown ()
  (gemini-companion-permission-test-with
    ;; The hook has exited, and the shell of a CLI that has is a child of process 1.
    (dolist (pids '(() (11 1)))
      (gemini-companion-permission-ask
       `(:client "qwen" :pids ,pids :directory "/src/shop" :id "id")
       (gemini-companion-permission-test-input "ls")
       (lambda (answer) (push answer gemini-companion-permission-test-answers)))
      (should (equal '(nil) gemini-companion-permission-test-answers))
      (should-not (gemini-companion-requests))
      (setq gemini-companion-permission-test-answers nil))))

;; Qwen Code refuses it without a question, and its title has shown nothing.

;; In the terminal of the CLI, RET is a yes to the dialog that is shown.

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
