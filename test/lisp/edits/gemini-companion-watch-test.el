;;; gemini-companion-watch-test.el --- Tests of watched files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert-x)
(require 'gemini-companion-part)
(require 'gemini-companion-remote-test-helper)
(require 'gemini-companion-review-test-helper)
(require 'gemini-companion-watch)

(ert-deftest gemini-companion-watch-repeats-a-whole-change-until-it-is-followed ()
  (gemini-companion-test-with-directory '(("a" "one\n"))
    (let* ((follows nil)
           (reported nil)
           (watch (gemini-companion-watch-start
                   "a" (lambda (_watch changed _now)
                         (setq reported changed)
                         follows)))
           (seen (lambda ()
                   (gemini-companion-watch-check watch)
                   reported)))
      (should-not (funcall seen))
      (pcase-dolist
          (`(,how ,text ,more)
           `((write "two") (replace "two") (delete) (write "1")
             (write ,(make-string 100000 ?x) may-follow)))
        (pcase how
          ('delete (delete-file "a"))
          ('write (gemini-companion-test-write "a" text))
          ('replace (gemini-companion-test-write "b" text)
                    (rename-file "b" "a" t)))
        (setq follows nil)
        (when more
          (should-not (funcall seen)))
        (should (funcall seen))
        (setq follows t)
        (should (funcall seen))
        (should-not (funcall seen)))
      (gemini-companion-watch-stop watch))))

;; A CLI that the machine had stopped there had emptied the file, as was said.
(ert-deftest gemini-companion-watch-takes-a-file-for-empty-only-after-a-time ()
  (gemini-companion-test-with-directory '(("a" "one\n") ("b" "one\n") ("c" ""))
    (let* ((reported nil)
           (watches (mapcar (lambda (file)
                              (gemini-companion-watch-start
                               file
                               (lambda (watch changed _now)
                                 (when changed
                                   (push (gemini-companion-watch-file watch) reported)))
                               ;; A CLI may have emptied it just before.
                               (equal "c" file)))
                            '("a" "b" "c")))
           (check (lambda ()
                    (dotimes (_ 2)
                      (mapc #'gemini-companion-watch-check watches))))
           (gemini-companion-watch-empty-seconds 1000))
      (gemini-companion-test-write "a" "")
      (gemini-companion-test-write "b" "")
      (funcall check)
      (should-not reported)
      (gemini-companion-test-write "b" "two\n")
      (funcall check)
      (should (equal '("b") reported))
      (setq gemini-companion-watch-empty-seconds 0)
      (funcall check)
      (should (equal '("c" "a" "b") reported))
      (mapc #'gemini-companion-watch-stop watches))))

(ert-deftest gemini-companion-watch-goes-on-by-itself-until-its-end ()
  (gemini-companion-test-with-directory '(("a" "one\n"))
    (let* ((debug-on-error nil)
           (inhibit-message t)
           (timers (gemini-companion-test-timers))
           (count 0)
           (watch (gemini-companion-watch-start
                   "a" (lambda (_watch changed _now)
                         (when changed
                           (setq count (1+ count))
                           (error "Boom"))))))
      (gemini-companion-test-write "a" "two")
      (gemini-companion-test-eventually (< 2 count))
      (gemini-companion-watch-stop watch)
      ;; What other tests have left may have ended.
      (should-not (seq-difference (gemini-companion-test-timers) timers)))))

(defmacro gemini-companion-watch-test-with (text &rest body)
  "Watch a file with TEXT while BODY is run; `watch' is the watch of it."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory (list (list "a" ,text))
     (gemini-companion-part-start 'watch)
     (let ((watch (gemini-companion-watch-start (expand-file-name "a") #'always)))
       ,@body)))

(ert-deftest gemini-companion-watch-many-files-take-one-timer-and-few-checks ()
  "A timer for each of 200 open reviews took a quarter of a processor."
  (gemini-companion-test-with-directory '(("a" "one\n"))
    (let* ((checks 0)
           (start (lambda (lasting)
                    (gemini-companion-watch-start
                     "a" (lambda (&rest _) (ignore (cl-incf checks))) nil lasting)))
           (timers (lambda () (gemini-companion-test-timers "watch")))
           ;; Return how many checks are done in SECONDS.
           (rate (lambda (seconds)
                   (let ((began checks)
                         (passed 0))
                     (while (< passed seconds)
                       (let ((timer (car (funcall timers))))
                         (should-not (cdr (funcall timers)))
                         (cl-incf passed (float-time (time-subtract
                                                      (timer--time timer) nil)))
                         (timer-event-handler timer)))
                     (/ (- checks began) passed)))))
      (unwind-protect
          (progn
            (dotimes (_ 200)
              (funcall start 'lasting))
            (funcall rate 20)
            (should (< (funcall rate 60) 50))
            ;; One that is awaited is checked soon, and often.
            (funcall start nil)
            (should (< 40 (funcall rate 0.01))))
        (gemini-companion-part-stop 'watch)
        (should-not (funcall timers))))))

(ert-deftest gemini-companion-watch-tells-writes-of-emacs-from-others ()
  (gemini-companion-watch-test-with "one\n"
    (with-current-buffer (find-file-noselect "a")
      (pcase-dolist (`(,written . ,write)
                     `((nil . ,(lambda () (insert "1") (save-buffer)))
                       (t . ,(lambda () (gemini-companion-test-rewrite "a" "2\n")))
                       (nil . ,(lambda ()
                                 (gemini-companion-watch-writing "a"
                                   (gemini-companion-test-rewrite "a" "2\n"))))
                       ;; Emacs reads what another program has written.
                       (t . ,(lambda ()
                               (gemini-companion-test-rewrite "a" "4\n")
                               (revert-buffer t t t)))
                       (nil . ,(lambda () (insert "5") (save-buffer)))
                       (nil . ,(lambda () (set-file-times "a" (time-add nil 9))
                                 (revert-buffer t t t)))
                       ;; A program in Emacs formats it.
                       (nil . ,(lambda ()
                                 (gemini-companion-test-rewrite "a" "6\n")
                                 (set-visited-file-modtime)))))
        (funcall write)
        (gemini-companion-watch-check watch)
        (should (eq written (gemini-companion-watch-written-p watch)))
        (should (gemini-companion-watch-touched-p watch))))))

(ert-deftest gemini-companion-watch-tells-a-save-on-a-host-from-a-write-there ()
  (gemini-companion-test-needs-add-on 'remote)
  (gemini-companion-watch-test-with "one\n"
    (let* ((copy (gemini-companion-watch-file watch))
           (gemini-companion-remote-names-hosts '(("/ssh:far:" :state "connected")))
           (gemini-companion-remote-names-copies
            `(("/ssh:far:" . ,(directory-file-name default-directory)))))
      (with-temp-buffer
        (insert "mine é\n")
        (setq buffer-file-name "/ssh:far:/a"
              buffer-file-truename "/ssh:far:/a"
              buffer-file-coding-system 'utf-8-dos)
        ;; The host sends it after the save.
        (run-hooks 'before-save-hook 'after-save-hook)
        (pcase-dolist (`(,text ,written) '(("mine \303\251\r\n" nil)
                                           ("theirs\n" t)))
          (gemini-companion-test-rewrite copy text)
          (gemini-companion-watch-check watch)
          (should (eq written (gemini-companion-watch-written-p watch))))
        (setq buffer-file-name nil)))))

(ert-deftest gemini-companion-watch-of-the-file-here-is-known-after-each-change ()
  (gemini-companion-test-with-directory '(("a" "one\n") ("b" "two\n"))
    (let ((buffers (mapcar #'find-file-noselect '("a" "b")))
          (watches nil))
      (cl-flet ((known () (mapcar (lambda (buffer)
                                    (with-current-buffer buffer
                                      (gemini-companion-watch-here-p)))
                                  (append buffers (list (car buffers)))))
                (watch (file)
                  (push (gemini-companion-watch-start (expand-file-name file) #'ignore)
                        watches)))
        (unwind-protect
            (progn
              (should (equal '(nil nil nil) (known)))
              (watch "a")
              (should (equal '(t nil t) (known)))
              (watch "b")
              (should (equal '(t t t) (known)))
              (gemini-companion-watch-stop (pop watches))
              (should (equal '(t nil t) (known)))
              ;; Another name of the file is another file.
              (with-current-buffer (car buffers)
                (set-visited-file-name (expand-file-name "c") t)
                (set-buffer-modified-p nil))
              (should (equal '(nil nil nil) (known))))
          (mapc #'gemini-companion-watch-stop watches)
          (mapc #'kill-buffer buffers))))))

(ert-deftest gemini-companion-watch-turns-to-files-after-redisplay ()
  (gemini-companion-test-with-directory '(("a" "1\n"))
    (let* ((turned nil)
           (gemini-companion-watch-turned-functions
            (list (lambda (buffer) (push buffer turned))))
           (window-selection-change-functions nil)
           (window-buffer-change-functions nil)
           (after-focus-change-function #'ignore))
      (gemini-companion-part-start 'watch)
      (with-temp-buffer
        (switch-to-buffer (current-buffer))
        (run-hook-with-args 'window-buffer-change-functions (selected-frame))
        (switch-to-buffer (find-file-noselect "a"))
        (run-hook-with-args 'window-buffer-change-functions (selected-frame))
        (should-not turned)
        (gemini-companion-test-in-the-end turned)
        (should (equal (list (get-file-buffer "a")) turned))
        (setq turned nil)
        (cl-letf (((symbol-function 'frame-focus-state) #'ignore))
          (funcall after-focus-change-function))
        (cl-letf (((symbol-function 'frame-focus-state) #'always))
          (funcall after-focus-change-function))
        (gemini-companion-test-in-the-end turned)
        (should (equal '(nil) turned))))))

;;; gemini-companion-watch-test.el ends here
