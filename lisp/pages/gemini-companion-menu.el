;;; gemini-companion-menu.el --- The commands as a transient  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The table of commands in gemini-companion-commands.el as transients.  They are in a
;; separate file, so that Emacs loads the package transient only when one is used.

;;; Code:

(require 'gemini-companion-commands)
(require 'map)
(require 'transient)

(defun gemini-companion-menu--suffix (entry)
  "Return the suffix of a transient for ENTRY of the table of commands."
  (pcase-let ((`(,key ,command ,label ,_ . ,(map :enable :on :stay)) entry))
    `(,key ,command
      :description
      ,(if on
           `(lambda ()
              (format "%s (%s)" ,label
                      (if (gemini-companion-commands-state ',on) "on" "off")))
         label)
      ,@(and enable
             `(:inapt-if-not
               (lambda () (gemini-companion-commands-state ',enable))))
      ,@(and stay '(:transient t)))))

(pcase-dolist (`(,name ,documentation ,contexts . ,description)
               '((gemini-companion-menu
                  "Display the commands of gemini-companion in a menu." (global))
                 (gemini-companion-review-menu
                  "Display the commands for a review in a menu." (review view plain)
                  :description (lambda () (gemini-companion-commands-state 'summary)))
                 (gemini-companion-overview-menu
                  "Display the commands of the overview in a menu." (overview))))
  (let ((groups (mapcar (pcase-lambda (`(,title . ,rows))
                          (vconcat (list title)
                                   (mapcar #'gemini-companion-menu--suffix rows)))
                        (apply #'gemini-companion-commands-menu contexts))))
    ;; The form is made when this file is loaded: it differs between the versions of
    ;; Transient, of which another one may be installed later.
    (eval `(transient-define-prefix ,name ()
             ,documentation
             ;; In a frame of 80 columns, three have room beside each other.
             ,@(mapcar (apply-partially #'vconcat description)
                       (seq-partition groups (if (nthcdr 3 groups) 2 3))))
          t)))

(provide 'gemini-companion-menu)
;;; gemini-companion-menu.el ends here
