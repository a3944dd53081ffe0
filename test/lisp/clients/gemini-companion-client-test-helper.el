;;; gemini-companion-client-test-helper.el --- Help for tests of the CLIs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-test-helper)

(defmacro gemini-companion-client-test-setting (text &rest body)
  "Run BODY with a settings file of TEXT, `file', or none if it is nil."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory nil
     (with-environment-variables (("GEMINI_CLI_HOME" directory))
       (let ((file (expand-file-name ".gemini/settings.json"))
             (json-object-type 'plist)) ; as a user's init file may have it
         (when-let* ((text ,text))
           (gemini-companion-test-write file text))
         (save-window-excursion ,@body)))))

(provide 'gemini-companion-client-test-helper)
;;; gemini-companion-client-test-helper.el ends here
