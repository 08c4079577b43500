import { Tabs } from 'antd'
import { useSearchParams } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { Events } from '../../ui/Events'
import { Quota } from './Quota'
import { Resources } from './Resources'
import { words } from './words'

export default function Overview() {
  const w = useWords(words)
  const namespace = useNamespace()
  const [params, setParams] = useSearchParams()
  useCrumbs([{ label: w('title') }])
  return (
    <>
      <h1 className="visually-hidden">{w('title')}</h1>
      <div className="panel">
        <Tabs
          activeKey={params.get('tab') ?? 'resources'}
          onChange={(tab) => setParams({ tab }, { replace: true })}
          destroyOnHidden
          items={[
            { key: 'resources', label: w('resources'), children: <Resources namespace={namespace} /> },
            { key: 'events', label: w('events'), children: <Events namespace={namespace} showObject title={false} /> },
            { key: 'quota', label: w('quota'), children: <Quota namespace={namespace} /> },
          ]}
        />
      </div>
    </>
  )
}
