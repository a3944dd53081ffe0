;;; gemini-companion-events-test.el --- Tests of the list of events  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-events)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-events-test-with (&rest body)
  "Evaluate BODY, and kill the buffer of events afterwards."
  (declare (indent 0) (debug t))
  `(save-window-excursion
     (unwind-protect (progn ,@body)
       (when (get-buffer "*gemini-companion events*")
         (kill-buffer "*gemini-companion events*")))))

(defun gemini-companion-events-test-lines ()
  "Show the events, select their buffer, and return its visible lines."
  (gemini-companion-events-buffer)
  (set-buffer "*gemini-companion events*")
  (split-string (buffer-string) "\n" t))

(ert-deftest gemini-companion-events-are-a-line-each ()
  (gemini-companion-events-test-with
    (gemini-companion-events-record 'sent 'before)
    (gemini-companion-events-record 'received 'open-diff '(7 (:id "x") "/a" "b"))
    (gemini-companion-events-record 'sent 'diff-rejected '(7))
    (let ((lines (last (gemini-companion-events-test-lines) 3)))
      (should (string-match-p " -> before\\'" (pop lines)))
      (should (string-match-p
               "\\`[0-9:.]+ <- open-diff 7 (:id \"x\") \"/a\" \"b\"\\'" (nth 0 lines)))
      (should (string-match-p " -> diff-rejected 7\\'" (nth 1 lines))))))

(ert-deftest gemini-companion-events-are-bounded ()
  (gemini-companion-events-test-with
    (let ((text (make-string 10000 ?x)))
      (dotimes (n 1000)
        (gemini-companion-events-record 'sent 'diff-accepted (list n text))))
    (should (< (length (gemini-companion-events-test-lines)) 1000))
    (should (< (buffer-size) 500000))
    (should (string-match-p " -> diff-accepted 999 " (buffer-string)))
    (should (string-match-p "10000 characters" (buffer-string)))))

;;; gemini-companion-events-test.el ends here
