/** A dialog that is on the page while it is open; when it goes, focus is back where it was. */
import { Modal, type ModalProps } from 'antd'
import { useEffect, useState } from 'react'

export function Dialog(props: Omit<ModalProps, 'open'>) {
  const [before] = useState(() => document.activeElement as HTMLElement | null)
  useEffect(
    () => () => {
      if (document.activeElement === document.body) before?.focus()
    },
    [before],
  )
  return <Modal open {...props} />
}
