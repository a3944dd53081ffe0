;;; gemini-companion-cache-test.el --- Tests of the cache  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-cache)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-cache-test-with (files &rest body)
  "Evaluate BODY with an empty cache, in a new directory with FILES."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory ,files
     (gemini-companion-cache-refresh)
     (unwind-protect
         (progn ,@body)
       (gemini-companion-cache-refresh))))

(ert-deftest gemini-companion-cache-computes-a-value-once ()
  (gemini-companion-cache-test-with '()
    (let ((computed 0))
      (cl-flet ((value (key)
                  (gemini-companion-cache-get key (lambda ()
                                                    (cl-incf computed)
                                                    nil))))
        ;; Nil is a value, too.
        (should-not (value '(key 1)))
        (should-not (value (list 'key 1)))
        (should (= 1 computed))
        (value '(key 2))
        (should (= 2 computed))
        (gemini-companion-cache-drop '(key 1))
        (value '(key 2))
        (should (= 2 computed))
        (value '(key 1))
        (should (= 3 computed))))))

(ert-deftest gemini-companion-cache-is-refreshed-if-a-file-has-changed ()
  (gemini-companion-cache-test-with '(("rules" "a") ("other" "a"))
    (let ((rules (expand-file-name "rules"))
          (new (expand-file-name "new")))
      (cl-flet ((value (computed)
                  (gemini-companion-cache-note-time rules)
                  (gemini-companion-cache-note-time new)
                  (gemini-companion-cache-get 'value (lambda () computed))))
        (should (equal 1 (value 1)))
        (set-file-times (expand-file-name "other") 0)
        (should-not (gemini-companion-cache-refresh t))
        (should (equal 1 (value 2)))
        (set-file-times rules 0)
        (should (gemini-companion-cache-refresh 'old))
        (should (equal 2 (value 2)))
        ;; A new file counts only on request.
        (gemini-companion-test-write "new" "a")
        (should-not (gemini-companion-cache-refresh 'old))
        (should (equal 2 (value 3)))
        (should (gemini-companion-cache-refresh t))
        (should (equal 3 (value 3)))
        (delete-file new)
        (should (gemini-companion-cache-refresh 'old))))))

;; Each write of a file and each buffer left a value until a file with rules changed.
(ert-deftest gemini-companion-cache-has-one-value-for-each-key-and-none-of-killed-buffers ()
  (gemini-companion-cache-test-with nil
    (let ((computed 0)
          (key nil))
      (cl-flet ((value (n)
                  (gemini-companion-cache-get key (lambda () (cl-incf computed) n) n)))
        (with-temp-buffer
          (setq key (list 'buffer (current-buffer)))
          (dotimes (n 50)
            (should (equal n (value n))))
          (value 49)
          (should (= 50 computed))
          (should-not (gemini-companion-cache-refresh t))
          (value 49)
          (should (= 50 computed))
          ;; Those of other states are not kept.
          (value 3)
          (should (= 51 computed)))
        (value 3)
        (should (= 51 computed))
        (should-not (gemini-companion-cache-refresh t))
        (value 3)
        (should (= 52 computed))))))

;;; gemini-companion-cache-test.el ends here
