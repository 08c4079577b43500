/** Tabs whose choice is part of the address (?tab=). */
import { EllipsisOutlined } from '@ant-design/icons'
import { Tabs, type TabsProps } from 'antd'
import { useSearchParams } from 'react-router-dom'
import { useWords } from '../i18n'
import { words } from './words'

export function PageTabs({ items }: { items: NonNullable<TabsProps['items']> }) {
  const w = useWords(words)
  const [params, setParams] = useSearchParams()
  return (
    <Tabs
      items={items}
      activeKey={params.get('tab') ?? items[0]!.key}
      onChange={(tab) => setParams((before) => { before.set('tab', tab); return before }, { replace: true })}
      destroyOnHidden
      more={{
        icon: (
          <>
            <EllipsisOutlined aria-hidden />
            <span className="visually-hidden">{w('moreTabs')}</span>
          </>
        ),
      }}
    />
  )
}
