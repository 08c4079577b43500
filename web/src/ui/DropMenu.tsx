/** A menu below its button that works without a mouse: focus moves in, and goes back when something was chosen. */
import { Dropdown, type DropdownProps, type MenuProps } from 'antd'
import { useRef } from 'react'

interface Props extends Omit<DropdownProps, 'menu' | 'trigger' | 'autoFocus' | 'onOpenChange'> {
  menu: MenuProps
}

export function DropMenu({ menu, ...rest }: Props) {
  const button = useRef<HTMLElement | null>(null)
  const back = (): void => button.current?.focus()
  return (
    <Dropdown
      {...rest}
      autoFocus
      trigger={['click']}
      onOpenChange={(open) => {
        if (open) button.current = document.activeElement as HTMLElement | null
      }}
      menu={{
        ...menu,
        // Before the entry does its work: a dialog that it opens gives focus back to where it was then.
        onClickCapture: back,
        onKeyDownCapture: (event) => {
          const entry = event.target as HTMLElement
          if (event.key !== 'Enter' || entry.closest('a')) return
          event.preventDefault() // or the button, which has focus from here on, would be pressed as well
          back()
          entry.querySelector('a')?.click()
        },
      }}
    />
  )
}
