import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { Events } from '../../ui/object/Events'
import { PageTabs } from '../../ui/object/PageTabs'
import { Quota } from './Quota'
import { Resources } from './Resources'
import { words } from './words'

export default function Overview() {
  const w = useWords(words)
  const namespace = useNamespace()
  useCrumbs([{ label: w('title') }])
  return (
    <>
      <h1 className="visually-hidden">{w('title')}</h1>
      <div className="panel">
        <PageTabs
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
