/** A panel below its button that works without a mouse: focus moves in, Escape and leaving it close it. */
import { Popover, type PopoverProps } from 'antd'
import { useEffect, useRef, useState, type FocusEvent, type KeyboardEvent, type ReactNode } from 'react'

interface Props extends Omit<PopoverProps, 'content' | 'trigger' | 'open' | 'onOpenChange'> {
  /** what the panel is, for those who cannot see what opened it */
  label: string
  content: (close: () => void) => ReactNode
}

const FOCUSABLE = 'a[href], button:not([disabled]), input:not([disabled]), [tabindex="0"]'

export function DropPanel({ label, content, ...rest }: Props) {
  const [open, setOpen] = useState(false)
  const button = useRef<HTMLElement | null>(null)
  const close = (): void => {
    setOpen(false)
    button.current?.focus()
  }
  return (
    <Popover
      {...rest}
      trigger="click"
      open={open}
      destroyOnHidden
      onOpenChange={(next) => {
        if (next) button.current = document.activeElement as HTMLElement | null
        setOpen(next)
      }}
      content={
        <Held label={label} close={close} left={() => setOpen(false)}>
          {content(close)}
        </Held>
      }
    />
  )
}

function Held({ label, close, left, children }: { label: string; close: () => void; left: () => void; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const inside = box.current?.querySelector<HTMLElement>(FOCUSABLE) ?? box.current
    // What is not on the screen yet cannot have focus.
    const frame = requestAnimationFrame(() => inside?.focus({ preventScroll: true }))
    return () => cancelAnimationFrame(frame)
  }, [])
  const onKeyDown = (event: KeyboardEvent): void => {
    const all = [...(box.current?.querySelectorAll<HTMLElement>(FOCUSABLE) ?? [])]
    const past = event.shiftKey ? all[0] : all.at(-1)
    const leaves = event.key === 'Tab' && (all.length === 0 || document.activeElement === past)
    if (event.key !== 'Escape' && !leaves) return
    event.preventDefault()
    event.stopPropagation()
    close()
  }
  const onBlur = (event: FocusEvent): void => {
    if (event.relatedTarget && !box.current?.contains(event.relatedTarget)) left()
  }
  return (
    <div ref={box} role="group" aria-label={label} tabIndex={-1} onKeyDown={onKeyDown} onBlur={onBlur}>
      {children}
    </div>
  )
}
