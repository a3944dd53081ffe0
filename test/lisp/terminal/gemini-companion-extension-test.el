;;; gemini-companion-extension-test.el --- Tests of the extensions of CLIs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'gemini-companion-cli-test-helper)
(require 'gemini-companion-extension)

(defmacro gemini-companion-extension-test-with-home (answers &rest body)
  "Run BODY with a directory of Pi, `home'; ANSWERS are those to questions.
`questions' are those that were asked, the last first."
  (declare (indent 1) (debug t))
  `(gemini-companion-test-with-directory nil
     (let* ((home (expand-file-name "pi/" directory))
            (process-environment (cons (concat "PI_CODING_AGENT_DIR=" home)
                                       process-environment))
            (gemini-companion-extension--declined nil)
            (answers ,answers)
            (questions nil))
       (ignore questions)
       (make-directory home)
       (cl-letf (((symbol-function 'y-or-n-p)
                  (lambda (question)
                    (push question questions)
                    (pop answers))))
         ,@body))))

(defun gemini-companion-extension-test-files (home)
  "Return the names of the files in HOME, relative to it."
  (mapcar (lambda (file) (file-relative-name file home))
          (directory-files-recursively home "")))

(ert-deftest gemini-companion-extension-is-offered-once-in-an-emacs ()
  (gemini-companion-extension-test-with-home (list nil)
    (gemini-companion-extension-offer "gemini")
    (should-not questions)
    (gemini-companion-extension-offer "pi")
    (gemini-companion-extension-offer "pi")
    (should (= 1 (length questions)))
    (should-not (gemini-companion-extension-installed-p "pi")))
  (gemini-companion-extension-test-with-home (list t)
    (gemini-companion-extension-offer "pi")
    (gemini-companion-extension-offer "pi")
    (should (= 1 (length questions)))
    (should (gemini-companion-extension-installed-p "pi"))))

(ert-deftest gemini-companion-extension-is-renewed-where-it-is-installed ()
  (gemini-companion-extension-test-with-home (list t)
    (gemini-companion-part-ready 'extension 'started)
    (should-not (gemini-companion-extension-test-files home))
    (gemini-companion-extension-offer "pi")
    (let* ((file (expand-file-name "extensions/gemini-companion/index.js" home))
           (text (gemini-companion-text-read file)))
      (write-region "old" nil file nil 'silent)
      (gemini-companion-part-ready 'extension 'started)
      (should (equal text (gemini-companion-text-read file))))))

(ert-deftest gemini-companion-extension-that-is-deleted-leaves-files-of-the-user ()
  (gemini-companion-extension-test-with-home (list t)
    (gemini-companion-extension-offer "pi")
    (should (equal '("extensions/gemini-companion/companion.mjs"
                     "extensions/gemini-companion/index.js")
                   (gemini-companion-extension-test-files home)))
    (write-region "" nil (expand-file-name "extensions/gemini-companion/mine" home)
                  nil 'silent)
    (gemini-companion-extension-delete "pi")
    ;; It was installed again.
    (gemini-companion-part-ready 'extension 'started)
    (should (equal '("extensions/gemini-companion/mine")
                   (gemini-companion-extension-test-files home)))))

(ert-deftest gemini-companion-extension-that-cannot-be-written-is-no-crash ()
  (gemini-companion-extension-test-with-home (list t)
    (write-region "" nil (expand-file-name "extensions" home) nil 'silent)
    (should (string-search
             "Extension of Pi not installed"
             (cadr (should-error (gemini-companion-extension-offer "pi")
                                 :type 'user-error))))))

(provide 'gemini-companion-extension-test)
;;; gemini-companion-extension-test.el ends here
