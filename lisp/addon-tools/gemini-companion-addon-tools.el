;;; gemini-companion-addon-tools.el --- The add-on for linked CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Declare the add-on to the core before its files are loaded: its commands, and the
;; finding in the status that CLIs can be linked.  The add-on answers linked CLIs:
;; questions of models, permissions and plans.

;;; Code:

(require 'gemini-companion-part)

(declare-function gemini-companion-cli-clients "gemini-companion-cli")
(declare-function gemini-companion-client-link-arguments
                  "gemini-companion-client")
(declare-function gemini-companion-install-extension-p "gemini-companion-install")

;;;; Autoloads

(gemini-companion-part-autoload 'permission
                                'gemini-companion-permission-allow
                                'gemini-companion-permission-refuse
                                'gemini-companion-permission-refuse-with-reason
                                'gemini-companion-permission-answer-there
                                'gemini-companion-permission-quit)
(gemini-companion-part-autoload 'plan 'gemini-companion-plan-comment-here)
(gemini-companion-part-autoload 'inquiry 'gemini-companion-inquiry-choose)

;;;; Declarations

(cl-defmethod gemini-companion-part-commands ((_part (eql 'addon-tools)))
  "Return the command that links CLIs, and the keys that answer a permission."
  '((nil nil ("q" gemini-companion-permission-quit nil
              (permission plan inquiry rename) :header "close"))
    (nil nil ("RET" gemini-companion-permission-answer-there nil
              (permission plan inquiry) :header "terminal"))
    (nil nil ("r" gemini-companion-permission-refuse-with-reason nil (plan)
              :header "send comments"))
    (nil nil ("c" gemini-companion-plan-comment-here nil (plan)
              :header "comment"))
    (nil nil ("a" gemini-companion-inquiry-choose nil (inquiry)
              :header "answer"))
    (nil nil ("R" gemini-companion-permission-refuse-with-reason nil
              (permission rename) :header "reason"))
    (nil nil ("r" gemini-companion-permission-refuse nil (permission rename)
              :header "refuse"))
    (nil nil ("C-c C-c" gemini-companion-permission-allow nil (permission rename)
              :header "allow"))
    ("CLI" "P"
     ("t" gemini-companion-tools "Link CLIs" (global) :on linked))))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'linked)))
  "Return non-nil if CLIs are linked to Emacs."
  (gemini-companion-install-extension-p))

(cl-defmethod gemini-companion-part-findings ((_part (eql 'addon-tools)) _directory)
  "Return the finding with a button to link CLIs, or nil if they are linked.
The component `tools', which is loaded once CLIs are linked, has other
findings."
  (when (and (seq-some #'gemini-companion-client-link-arguments
                       (gemini-companion-cli-clients))
             (not (gemini-companion-install-extension-p)))
    '(("Links" note "No CLI is linked, so none receives errors or asks about code"
       nil ("Link" . gemini-companion-tools)))))

(cl-defmethod gemini-companion-part-members ((_part (eql 'addon-tools)))
  "Return the component that links CLIs, which must start if CLIs are linked."
  '((tools walk gemini-companion-install-extension-p)))

(provide 'gemini-companion-addon-tools)
;;; gemini-companion-addon-tools.el ends here
