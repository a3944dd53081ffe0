;;; gemini-companion-format-test.el --- Tests of formats of files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'ert)
(require 'gemini-companion-format)
(require 'gemini-companion-test-helper)

(defun gemini-companion-format-test-of (bytes)
  "Return the format of BYTES, in Latin-1 if not in UTF-8, as a list."
  (let ((format (gemini-companion-format-of-bytes bytes 'iso-latin-1-unix)))
    (list (gemini-companion-format-coding format)
          (gemini-companion-format-mark format)
          (gemini-companion-format-ends format)
          (gemini-companion-format-open format))))

(ert-deftest gemini-companion-format-of-bytes-is-what-shows ()
  :tags '(pure)
  (pcase-dolist (`(,bytes . ,format)
                 '(("" nil nil nil nil)
                   ("a" nil nil nil t)
                   ("a\n" nil nil lf nil)
                   ("a\r\nb\r\n" nil nil crlf nil)
                   ("a\r\nb\n" nil nil mixed nil)
                   ("\n\r\n" nil nil mixed nil)
                   ("\357\273\277a\n" nil t lf nil)
                   ("\303\251\n" utf-8 nil lf nil)
                   ("\351\n" iso-latin-1 nil lf nil)
                   ("\377\376\351\0\r\0\n\0" utf-16le t crlf nil)
                   ("\376\377\0a\0\n" utf-16be t lf nil)))
    (ert-info ((format "%S" bytes))
      (should (equal format (gemini-companion-format-test-of bytes))))))

(ert-deftest gemini-companion-format-of-a-buffer-is-that-of-its-file ()
  (dolist (coding '(utf-8-unix utf-8-dos utf-8-with-signature-unix iso-latin-1-dos
                               utf-16le-with-signature-dos
                               utf-16be-with-signature-unix))
    (dolist (text '("a\n" "é\nb" "\n"))
      (let ((file (make-temp-file "format-"))
            (coding-system-for-read coding))
        (unwind-protect
            (let ((bytes (encode-coding-string text coding)))
              (let ((coding-system-for-write 'no-conversion))
                (write-region bytes nil file nil 'silent))
              (with-current-buffer (find-file-noselect file)
                (ert-info ((format "%s %S" coding text))
                  (should (gemini-companion-format-same-p
                           (gemini-companion-format-of-bytes bytes 'iso-latin-1-unix)
                           (gemini-companion-format-of-buffer (current-buffer)))))
                (kill-buffer)))
          (delete-file file))))))

(ert-deftest gemini-companion-format-conversion-is-in-words ()
  :tags '(pure)
  (pcase-dolist (`(,from ,to . ,conversion)
                 '(("a\n" "b\r\n" . "line ends LF → CRLF")
                   ("a\r\nb\n" "a\r\nb\r\n" . "line ends mixed → CRLF")
                   ("\351\n" "\303\251\n" . "encoding iso-latin-1 → utf-8")
                   ("\357\273\277a\r\n" "a\n"
                    . "line ends CRLF → LF, byte order mark removed")
                   ("a\n" "\357\273\277a\n" . "byte order mark added")
                   ("a\n" "b" . nil)
                   ("\351\n" "e\n" . nil)
                   ;; Its bytes are others also where all characters are ASCII.
                   ("\377\376a\0\n\0" "a\n"
                    . "encoding utf-16le → utf-8, byte order mark removed")
                   ("a\n" "\376\377\0a\0\n"
                    . "encoding utf-8 → utf-16be, byte order mark added")
                   ("\377\376a\0\n\0" "\376\377\0a\0\n"
                    . "encoding utf-16le → utf-16be")))
    (should (equal conversion
                   (apply #'gemini-companion-format-conversion
                          (mapcar (lambda (bytes)
                                    (gemini-companion-format-of-bytes
                                     bytes 'iso-latin-1-unix))
                                  (list from to))))))
  (should-not (gemini-companion-format-conversion nil nil)))

(ert-deftest gemini-companion-format-of-a-buffer-becomes-utf-16-again ()
  (pcase-dolist (`(,bytes ,from ,to)
                 '(("\377\376a\0\n\0" utf-8-unix utf-16le-with-signature-unix)
                   ("\376\377\0a\0\r\0\n" utf-8-unix utf-16be-with-signature-dos)
                   ("a\n" utf-16le-with-signature-unix utf-8-unix)
                   ("\303\251\n" utf-16be-with-signature-unix utf-8-unix)))
    (with-temp-buffer
      (insert "a\n")
      (setq buffer-file-coding-system from)
      (should-not (gemini-companion-format-convert-buffer
                   (gemini-companion-format-of-bytes bytes 'iso-latin-1-unix)))
      (should (eq (coding-system-base to)
                  (coding-system-base buffer-file-coding-system)))
      (should (equal bytes (encode-coding-string
                            (if (equal "\303\251\n" bytes) "é\n" "a\n")
                            buffer-file-coding-system))))))

(defun gemini-companion-format-test-convert-and-undo ()
  "Convert the current buffer, in UTF-8, to Latin-1 and CRLF, and undo that."
  (undo-boundary)
  (should-not (gemini-companion-format-convert-buffer
               (gemini-companion-format-of-bytes "\351\r\n" 'iso-latin-1-unix)))
  (should (eq 'iso-latin-1-dos buffer-file-coding-system))
  (undo-boundary)
  (let ((last-command 'ignore))
    (undo))
  (should (eq 'utf-8-unix buffer-file-coding-system)))

(ert-deftest gemini-companion-format-of-a-buffer-is-converted-and-undone ()
  (with-temp-buffer
    (buffer-enable-undo)
    (insert "é\n")
    (setq buffer-file-coding-system 'utf-8-unix)
    (gemini-companion-format-test-convert-and-undo)
    (insert "你")
    (should (string-search
             "does not have"
             (gemini-companion-format-convert-buffer
              (gemini-companion-format-of-bytes "\351\r\n" 'iso-latin-1-unix))))
    (should (string-search
             "both kinds"
             (gemini-companion-format-convert-buffer
              (gemini-companion-format-of-bytes "a\r\n\n" 'iso-latin-1-unix))))
    (should (eq 'utf-8-unix buffer-file-coding-system))))

(ert-deftest gemini-companion-format-that-the-user-chose-is-converted-and-undone ()
  (with-temp-buffer
    (buffer-enable-undo)
    (insert "é\n")
    (set-buffer-file-coding-system 'utf-8-unix)
    (let ((chosen (copy-tree buffer-file-coding-system-explicit)))
      (gemini-companion-format-test-convert-and-undo)
      (should (equal chosen buffer-file-coding-system-explicit)))))

;;; gemini-companion-format-test.el ends here
