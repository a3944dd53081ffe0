;;; gemini-companion-turn-test.el --- Tests of the turns of CLIs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-part)
(require 'gemini-companion-session)
(require 'gemini-companion-turn)

(ert-deftest gemini-companion-turn-goes-on-only-if-its-end-was-supposed ()
  (let ((session (gemini-companion-session-make :id "1" :client "gemini")))
    (should-not (gemini-companion-session-turn session))
    (gemini-companion-turn-end session 4.0)
    (should-not (gemini-companion-session-turn session))
    (unwind-protect
        (let* ((turn (progn (gemini-companion-turn-begin session nil nil)
                            (gemini-companion-session-turn session)))
               (ended (lambda () (gemini-companion-turn-ended turn))))
          (should-not (funcall ended))
          (gemini-companion-turn-report session "Do it")
          (should (equal "Do it" (gemini-companion-turn-prompt turn)))
          (gemini-companion-turn-end session 5.0 'cut)
          ;; It has ended already.
          (gemini-companion-turn-end session 6.0)
          (should (eql 5.0 (funcall ended)))
          (gemini-companion-turn-continue session)
          (should-not (funcall ended))
          (gemini-companion-turn-end session 7.0)
          (gemini-companion-turn-continue session)
          (should (eql 7.0 (funcall ended)))
          ;; The next one leaves it as it is.
          (gemini-companion-turn-begin session "More" t)
          (should (eql 7.0 (funcall ended)))
          (should-not (eq turn (gemini-companion-session-turn session))))
      (gemini-companion-part-stop 'session))
    (should-not (gemini-companion-session-turn session))))

(ert-deftest gemini-companion-turn-is-that-of-a-cli-that-connects-again ()
  (unwind-protect
      (progn
        (gemini-companion-turn-begin
         (gemini-companion-session-make :id "1" :pid 7) "Do it" t)
        (should (equal "Do it" (gemini-companion-turn-prompt
                                (gemini-companion-session-turn
                                 (gemini-companion-session-make :id "2" :pid 7)))))
        (should-not (gemini-companion-session-turn
                     (gemini-companion-session-make :id "3" :pid 8))))
    (gemini-companion-part-stop 'session)))

;;; gemini-companion-turn-test.el ends here
