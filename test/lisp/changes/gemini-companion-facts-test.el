;;; gemini-companion-facts-test.el --- Tests of who has converted a file  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-facts)

(defun gemini-companion-facts-test-written (facts before after)
  "Return FACTS after a write of AFTER where BEFORE was, both bytes, and its hunk."
  (let ((hunk (gemini-companion-weave-hunk-of-edit 'edit 0 nil)))
    (cons (gemini-companion-facts-write
           facts
           (gemini-companion-format-of-bytes before 'utf-8-unix)
           (gemini-companion-format-of-bytes after 'utf-8-unix)
           (lambda (_) hunk))
          hunk)))

(defun gemini-companion-facts-test-conversion (facts hunks)
  "Return what HUNKS have converted in FACTS, a text."
  (gemini-companion-format-conversion
   (gemini-companion-facts-format (gemini-companion-facts-set-undone facts hunks t))
   (gemini-companion-facts-format facts)))

(ert-deftest gemini-companion-facts-of-one-conversion-are-undone-without-the-other ()
  :tags '(pure)
  (pcase-let* ((facts (gemini-companion-facts-start
                       (gemini-companion-format-of-bytes "1\n2\n" 'utf-8-unix)))
               (`(,facts . ,ends) (gemini-companion-facts-test-written
                                   facts "1\n2\n" "1\r\n2\r\n"))
               (`(,facts . ,mark) (gemini-companion-facts-test-written
                                   facts "1\r\n2\r\n" "\357\273\2771\r\n2\r\n")))
    (should (equal (list ends mark) (gemini-companion-facts-hunks facts)))
    (should (equal "line ends LF → CRLF"
                   (gemini-companion-facts-test-conversion facts (list ends))))
    (should (equal "byte order mark added"
                   (gemini-companion-facts-test-conversion facts (list mark))))
    ;; Others convert it back, and forth.
    (let ((look (gemini-companion-facts-look
                 facts (gemini-companion-format-of-bytes "1\n2\n" 'utf-8-unix))))
      (should-not (gemini-companion-facts-hunks look))
      (should (equal (list ends mark)
                     (gemini-companion-facts-hunks
                      (gemini-companion-facts-look
                       look (gemini-companion-format-of-bytes
                             "\357\273\2771\r\n2\r\n" 'utf-8-unix))))))))

;; A file was removed, and a CLI wrote it again: no format of before was known.  That
;; was taken for the format of others, and the next conversion was none.
(ert-deftest gemini-companion-facts-that-were-unknown-are-not-what-others-write ()
  :tags '(pure)
  (let* ((facts (gemini-companion-facts-write
                 (gemini-companion-facts-start nil)
                 nil (gemini-companion-format-of-bytes "\303\251\n" 'utf-8-unix) #'ignore))
         (latin-1 (gemini-companion-format-of-bytes "\351\n" 'iso-latin-1-unix))
         (hunk (gemini-companion-weave-hunk-of-edit 'edit 0 nil))
         (converted (gemini-companion-facts-write
                     facts latin-1
                     (gemini-companion-format-of-bytes "\303\251\n" 'utf-8-unix)
                     (lambda (_) hunk))))
    (should (equal latin-1 (gemini-companion-facts-format
                            (gemini-companion-facts-look facts latin-1))))
    (should (equal "encoding iso-latin-1 → utf-8"
                   (gemini-companion-facts-test-conversion converted (list hunk))))))

;; To keep the first one alone left a conversion that was not in the file.
(ert-deftest gemini-companion-facts-that-a-later-edit-took-back-are-kept-with-it ()
  :tags '(pure)
  (pcase-let* ((facts (gemini-companion-facts-start
                       (gemini-companion-format-of-bytes "1\n2\n" 'utf-8-unix)))
               (both "\357\273\2771\r\n2\r\n")
               (`(,facts . ,first) (gemini-companion-facts-test-written
                                    facts "1\n2\n" both))
               (`(,facts . ,second) (gemini-companion-facts-test-written
                                     facts both "1\r\n2\r\n")))
    (should (equal (list first second) (gemini-companion-facts-hunks facts)))
    (dolist (hunk (list first second))
      (setf (gemini-companion-weave-hunk-reviewed hunk) 'kept))
    (should-not (gemini-companion-facts-hunks facts))))

;; The CLI wrote the file before the undo of its conversion was saved: that was taken
;; for a conversion by others, and stayed when all was undone.
(ert-deftest gemini-companion-facts-undone-are-back-with-their-value ()
  :tags '(pure)
  (pcase-let* ((plain (gemini-companion-format-of-bytes "1\n2\n" 'utf-8-unix))
               (crlf (gemini-companion-format-of-bytes "1\r\n2\r\n" 'utf-8-unix))
               (`(,facts . ,hunk) (gemini-companion-facts-test-written
                                   (gemini-companion-facts-start plain)
                                   "1\n2\n" "1\r\n2\r\n"))
               (undone (gemini-companion-facts-set-undone facts (list hunk) t)))
    (should (eq 'lf (gemini-companion-format-ends
                     (gemini-companion-facts-format undone))))
    (should-not (gemini-companion-facts-hunks undone))
    (should (equal (list hunk) (gemini-companion-facts-hunks
                                (gemini-companion-facts-look undone crlf))))
    (pcase-let ((`(,facts . ,later) (gemini-companion-facts-test-written
                                     undone "1\r\n2\r\n" "1\n2\n")))
      (should (eq 'lf (gemini-companion-format-ends
                       (gemini-companion-facts-format
                        (gemini-companion-facts-set-undone
                         facts (list hunk later) t))))))
    (should (equal (list hunk)
                   (gemini-companion-facts-hunks
                    (gemini-companion-facts-set-undone undone (list hunk) nil))))))

(provide 'gemini-companion-facts-test)
;;; gemini-companion-facts-test.el ends here
