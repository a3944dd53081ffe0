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

(defun gemini-companion-menu--column (groups)
  "Return a column of a transient with GROUPS of the table of commands."
  (vconcat
   (list (caar groups))
   ;; The title of the first group is that of the column.
   (nthcdr 2 (mapcan (pcase-lambda (`(,title . ,rows))
                       (append (list "" (propertize title 'face 'transient-heading))
                               (mapcar #'gemini-companion-menu--suffix rows)))
                     groups))))

(defun gemini-companion-menu--columns (groups below)
  "Return GROUPS of the table of commands as columns of a transient.
BELOW is an alist from the title of a group to the one above it in its column."
  (mapcar (lambda (group)
            (gemini-companion-menu--column
             (cons group (seq-filter (lambda (other)
                                       (equal (car group)
                                              (cdr (assoc (car other) below))))
                                     groups))))
          ;; An add-on that is not installed has no group.
          (seq-remove (lambda (group)
                        (assoc (cdr (assoc (car group) below)) groups))
                      groups)))

(pcase-dolist (`(,name ,documentation ,contexts ,below)
               '((gemini-companion-menu
                  "Display the commands of gemini-companion in a menu." (global)
                  (("Reviews" . "CLI") ("Code" . "Connection")))
                 (gemini-companion-overview-menu
                  "Display the commands of the overview in a menu." (overview)
                  (("Show" . "Waiting")))))
  (let ((columns (gemini-companion-menu--columns
                  (apply #'gemini-companion-commands-menu contexts) below)))
    ;; The form is made when this file is loaded: it differs between the versions of
    ;; Transient, of which another one may be installed later.
    (eval `(transient-define-prefix ,name ()
             ,documentation
             ;; In a frame of 80 columns and 24 lines, three of 14 lines have room
             ;; beside each other, below two windows.
             ,@(mapcar #'vconcat
                       (seq-partition columns 3)))
          t)))

(provide 'gemini-companion-menu)
;;; gemini-companion-menu.el ends here
