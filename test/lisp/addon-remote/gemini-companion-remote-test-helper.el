;;; gemini-companion-remote-test-helper.el --- Other hosts in tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

;; Of what needs the add-on, no more than a case is in the tests of other files.
(require 'gemini-companion-remote nil 'noerror)

(defmacro gemini-companion-test-with-remote (&rest body)
  "Evaluate BODY while /ssh:far: is connected, with one root.
Its files in /shared are those in `directory' here, a new directory."
  (declare (indent 0) (debug t))
  `(let* ((directory (file-truename (make-temp-file "remote-" 'directory)))
          (gemini-companion-remote-directories
           `(("/ssh:far:" ("/shared" . ,directory))))
          (gemini-companion-remote-names-copies '(("/ssh:far:" . "/copies")))
          (gemini-companion-remote-names-hosts
           `(("/ssh:far:" :state "connected" :home "/home/me"
              :roots (("/srv/p/sub" "/srv/p") ("/none" nil)
                      ("/shared/q" "/shared/q"))))))
     (unwind-protect
         (progn ,@body)
       (delete-directory directory 'recursive))))

(provide 'gemini-companion-remote-test-helper)
;;; gemini-companion-remote-test-helper.el ends here
