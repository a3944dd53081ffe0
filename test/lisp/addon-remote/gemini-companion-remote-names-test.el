;;; gemini-companion-remote-names-test.el --- Tests of names of files on other hosts  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-label)
(require 'gemini-companion-names)
(require 'gemini-companion-remote-names)
(require 'gemini-companion-remote-test-helper)
(require 'gemini-companion-session)
(require 'gemini-companion-test-helper)

(ert-deftest gemini-companion-names-of-a-remote-file-and-its-copy ()
  (gemini-companion-test-with-remote
    (pcase-dolist (`(,remote ,copy)
                   `(("/ssh:far:/srv/p/a" "/copies/srv/p/a")
                     ("/ssh:far:~/a" "/copies/home/me/a")
                     ("/ssh:far:/shared/b" ,(expand-file-name "b" directory))
                     ;; The directory itself may be a root.
                     ("/ssh:far:/shared" ,directory)
                     ("/ssh:far:/sharedb" "/copies/sharedb")
                     ("/ssh:other:/srv/p/a" nil)
                     ("/srv/p/a" nil)))
      (should (equal copy (gemini-companion-names-copy remote))))
    (should (equal "/ssh:far:/srv/p/a"
                   (gemini-companion-names-visited "/copies/srv/p/a")))
    ;; Tramp takes that for no remote name.
    (should (equal "ssh:far:a\\nb"
                   (gemini-companion-label-file "/copies/srv/p/a\nb")))
    (should (equal "ssh:far:~" (gemini-companion-label-file "/copies/srv/p/~")))
    (should-not (gemini-companion-names-of-copy "/mirrored/a"))
    (should-not (gemini-companion-names-of-copy
                 (expand-file-name "b" directory)))
    (should (equal `("/copies/srv/p" ,(expand-file-name "q" directory))
                   (gemini-companion-names-roots nil)))
    (should (equal "ssh:far" (gemini-companion-names-title "/ssh:far:")))))

;;; gemini-companion-remote-names-test.el ends here
