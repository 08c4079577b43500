/** Tabs whose choice is part of the address (?tab=). Where they do not fit they stand on two lines. */
import { Tabs, type TabsProps } from 'antd'
import { useSearchParams } from 'react-router-dom'

export function PageTabs({ items }: { items: NonNullable<TabsProps['items']> }) {
  const [params, setParams] = useSearchParams()
  return (
    <Tabs
      items={items}
      activeKey={params.get('tab') ?? items[0]!.key}
      onChange={(tab) => setParams((before) => { before.set('tab', tab); return before }, { replace: true })}
      destroyOnHidden
    />
  )
}
