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
          if (event.key !== 'Enter') return
          const entry = event.target as HTMLElement
          const link = entry.closest('a') ?? entry.querySelector('a')
          event.preventDefault() // or the button, which has focus from here on, would be pressed as well
          if (!link) return back()
          event.stopPropagation() // the menu goes with the page that it is on, and must not look at itself afterwards
          link.click()
        },
      }}
    />
  )
}
