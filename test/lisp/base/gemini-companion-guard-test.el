;;; gemini-companion-guard-test.el --- Tests of keys that were not meant  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'cl-lib)
(require 'gemini-companion-guard)

(defmacro gemini-companion-guard-test-with-buffer (&rest body)
  "Evaluate BODY in a displayed buffer whose reading is watched."
  (declare (debug t) (indent 0))
  `(save-window-excursion
     (with-temp-buffer
       (switch-to-buffer (current-buffer))
       (gemini-companion-guard-watch-reading)
       (unwind-protect
           (let ((num-input-keys num-input-keys)
                 (gemini-companion-guard--quiet-seconds 0.02))
             ,@body)
         (gemini-companion-guard-read-again)))))

(defun gemini-companion-guard-test-draw ()
  "Draw the selected window as a redisplay does, and let the user pause."
  (run-hook-with-args 'pre-redisplay-functions (selected-window))
  (with-timeout (30 (error "No pause was noticed"))
    (while (null (gemini-companion-guard--reading-keys gemini-companion-guard--reading))
      (accept-process-output nil 0.01))))

(ert-deftest gemini-companion-guard-takes-the-first-key-after-a-look ()
  (gemini-companion-guard-test-with-buffer
    (cl-letf (((symbol-function 'current-idle-time) (lambda () '(0 10 0 0))))
      (cl-incf num-input-keys)
      (should-not (gemini-companion-guard-read-p))
      (gemini-companion-guard-test-draw)
      (cl-incf num-input-keys)
      (should (gemini-companion-guard-read-p))
      ;; The second key was not typed after a look of its own.
      (cl-incf num-input-keys)
      (should-not (gemini-companion-guard-read-p))
      (gemini-companion-guard-read-again)
      (should-not (gemini-companion-guard-read-p)))))

(ert-deftest gemini-companion-guard-takes-no-key-with-input-behind-it ()
  (gemini-companion-guard-test-with-buffer
    (cl-letf (((symbol-function 'current-idle-time) (lambda () '(0 10 0 0))))
      (gemini-companion-guard-test-draw)
      (cl-incf num-input-keys)
      (cl-letf (((symbol-function 'input-pending-p) #'always))
        (should-not (gemini-companion-guard-read-p)))
      (should (gemini-companion-guard-read-p)))))

(ert-deftest gemini-companion-guard-is-recent-for-a-second ()
  (cl-letf (((symbol-function 'float-time) (lambda (&rest _) 100.0)))
    (should (gemini-companion-guard-recent-p 99.5))
    (should-not (gemini-companion-guard-recent-p 99.0))
    ;; The clock was set back.
    (should-not (gemini-companion-guard-recent-p 101.0))))

(ert-deftest gemini-companion-guard-refuses-keys-in-a-burst ()
  (let ((gemini-companion-guard--burst-seconds 0))
    (cl-letf (((symbol-function 'sit-for) #'ignore))
      (should (equal '(user-error "Two keys")
                     (should-error (gemini-companion-guard-no-burst "Two keys")))))
    (cl-letf (((symbol-function 'sit-for) #'always))
      (should-not (gemini-companion-guard-no-burst "Two keys")))))

(ert-deftest gemini-companion-guard-ignores-keys-until-another-one ()
  (save-window-excursion
    (with-temp-buffer
      (switch-to-buffer (current-buffer))
      (unwind-protect
          (progn
            (gemini-companion-guard-ignore-keys '("a" "r") "It has ended")
            (execute-kbd-macro "araba")
            (should (equal "ba" (buffer-string)))
            (gemini-companion-guard-ignore-keys '("a") "It has ended")
            (gemini-companion-guard-heed-keys)
            (execute-kbd-macro "a")
            (should (equal "baa" (buffer-string))))
        (gemini-companion-guard-heed-keys)))))

;;; gemini-companion-guard-test.el ends here
